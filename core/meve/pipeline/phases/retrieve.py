"""Retrieve candidates from all sources (phase 1)."""

from collections.abc import Sequence
from dataclasses import replace

from meve.ports import Source
from meve.types import Candidate, Query


def retrieve(query: Query, sources: Sequence[Source], k: int) -> list[Candidate]:
    """Return at most k candidates from each source; duplicates are merged, with all their scores.

    The candidates of the first source come first, then what the next adds.

    Source: MeVe (Ottem 2025), section 3.2.
    """
    merged: dict[str, Candidate] = {}
    for source in sources:
        for candidate in source.search(query, k):
            known = merged.get(candidate.id)
            merged[candidate.id] = candidate if known is None else _merge(known, candidate)
    return list(merged.values())


def _merge(first: Candidate, second: Candidate) -> Candidate:
    return replace(
        first,
        scores={**second.scores, **first.scores},
        vector=second.vector if first.vector is None else first.vector,
        tokens=second.tokens if first.tokens is None else first.tokens,
    )
