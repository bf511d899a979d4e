"""Retrieve candidates from all sources (phase 1)."""

from collections.abc import Sequence
from dataclasses import replace

from meve.ports import Source
from meve.types import Candidate, Query

KEYWORD_SOURCE = "lexical"
"""The name of a source that searches by keywords."""


def retrieve(query: Query, sources: Sequence[Source], k: int) -> list[Candidate]:
    """Return at most k candidates from each source; duplicates are merged, with all their scores.

    The candidates of the first source come first, then what the next adds. Those of a keyword search also get the score
    `keywords`: the share of the best keyword score of this query, in [0, 1].

    Source: MeVe (Ottem 2025), section 3.2.
    """
    merged: dict[str, Candidate] = {}
    for source in sources:
        found = source.search(query, k)
        for candidate in _add_keyword_share(found) if source.name == KEYWORD_SOURCE else found:
            known = merged.get(candidate.id)
            merged[candidate.id] = candidate if known is None else _merge(known, candidate)
    return list(merged.values())


def _add_keyword_share(candidates: Sequence[Candidate]) -> list[Candidate]:
    best = max((c.scores.get(KEYWORD_SOURCE, 0.0) for c in candidates), default=0.0)
    if best <= 0:
        return list(candidates)
    return [
        replace(c, scores={**c.scores, "keywords": max(c.scores.get(KEYWORD_SOURCE, 0.0), 0.0) / best})
        for c in candidates
    ]


def _merge(first: Candidate, second: Candidate) -> Candidate:
    return replace(
        first,
        scores={**second.scores, **first.scores},
        vector=second.vector if first.vector is None else first.vector,
        tokens=second.tokens if first.tokens is None else first.tokens,
    )
