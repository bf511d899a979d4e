"""Phase 1, initial retrieval: which passages might matter? High recall; precision comes later."""

from collections.abc import Sequence
from dataclasses import replace

from meve.ports import Source
from meve.types import Candidate, Query


def retrieve(query: Query, sources: Sequence[Source], k: int) -> list[Candidate]:
    """At most k candidates from each source; one that several bring comes once, with the scores of all.

    Order: the first source's, then what the next adds.

    Source: MeVe (Ottem 2025), section 3.2.
    """
    found: dict[str, Candidate] = {}
    for source in sources:
        for candidate in source.search(query, k):
            known = found.get(candidate.id)
            found[candidate.id] = candidate if known is None else _merged(known, candidate)
    return list(found.values())


def _merged(first: Candidate, second: Candidate) -> Candidate:
    return replace(
        first,
        scores={**second.scores, **first.scores},
        vector=second.vector if first.vector is None else first.vector,
        tokens=second.tokens if first.tokens is None else first.tokens,
    )
