"""Retrieve candidates from all sources (phase 1)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from meve._pasted_text import holds_pasted_text
from meve.ports import Source
from meve.types import Candidate, Query

FEWEST_HITS = 3
"""Keyword shares need at least this many candidates with a word of the query: the best of fewer may be a chance hit."""


def retrieve(query: Query, sources: Sequence[Source], k: int) -> list[Candidate]:
    """Return at most k candidates from each source; duplicates are merged, with all their scores.

    The candidates of the first source come first, then what the next adds. If one of the sources has a method
    `score_ids`, every candidate that it knows gets a `keyword_share`, whichever source found it; unless the query holds
    a pasted text, whose words outweigh those of the question.

    Source: MeVe (Ottem 2025), section 3.2.
    """
    merged: dict[str, Candidate] = {}
    for source in sources:
        for rank, hit in enumerate(source.search(query, k)):
            candidate = replace(hit, source_rank=rank) if len(sources) > 1 else hit  # one source is in order already
            known = merged.setdefault(candidate.passage.id, candidate)
            if known is not candidate:
                merged[known.passage.id] = _merge(known, candidate)
    keywords = next((s for s in sources if getattr(s, "score_ids", None)), None)
    if holds_pasted_text(query.text):
        keywords = None
    return list(merged.values()) if keywords is None else _add_keyword_shares(query, list(merged.values()), keywords)


def _add_keyword_shares(query: Query, candidates: Sequence[Candidate], source: Any) -> list[Candidate]:  # noqa: ANN401
    scores = {c.id: c.scores[source.name] for c in candidates if source.name in c.scores}
    if missing := [c.id for c in candidates if c.id not in scores]:
        scores |= source.score_ids(query, missing)
    if sum(score > 0 for score in scores.values()) < FEWEST_HITS:
        return list(candidates)
    best = max(scores.values())
    return [replace(c, keyword_share=scores[c.id] / best) if c.id in scores else c for c in candidates]


def _merge(first: Candidate, second: Candidate) -> Candidate:
    return replace(
        first,
        scores={**second.scores, **first.scores},
        vector=second.vector if first.vector is None else first.vector,
        tokens=second.tokens if first.tokens is None else first.tokens,
        source_rank=min(first.source_rank, second.source_rank),
    )
