"""Phase 5, before packing: of each passage, the sentences that carry evidence, and its title.

The order of the sentences is kept, and a gap is marked, so that nobody takes what stands side by side for the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from meve.pipeline.phases.verify import score_candidates
from meve.ports import Scorer
from meve.types import Candidate, Passage, Query

GAP = "…"
"""Stands where sentences are left out, within a passage and at its ends."""

Split = Callable[[str], Sequence[str]]
"""A text's sentences, in order."""


def condense(
    asked: Sequence[tuple[Query, str]], candidates: Sequence[Candidate], scorer: Scorer, split: Split, threshold: float
) -> list[Candidate]:
    """The candidates in the order given, each with those of its sentences that reach the threshold, or its best one.

    Args:
        asked: what a sentence may answer: the question, and the question beside each piece of evidence, with the
            id of that passage, whose own sentences aren't judged by it. A sentence's best score counts.
        candidates: what is to be packed.
        scorer: the one that phase 2 used; it reads a sentence under its passage's title.
        split: into sentences.
        threshold: the score in [0, 1] from which on a sentence stays.
    """
    parts = {c.id: [s for s in split(c.passage.text) if s.strip()] for c in candidates}
    best: dict[str, float] = {}
    for query, evidence in asked:
        pieces = [
            Candidate(passage=Passage(id=_key(c, n), title=c.passage.title, text=text), origin="sentence")
            for c in candidates
            for n, text in enumerate(parts[c.id])
            if len(parts[c.id]) > 1 and c.id != evidence
        ]
        for piece in score_candidates(query, pieces, scorer):
            best[piece.id] = max(piece.score or 0.0, best.get(piece.id, 0.0))
    return [_cut(c, parts[c.id], best, threshold) for c in candidates]


def _cut(candidate: Candidate, sentences: Sequence[str], scores: dict[str, float], threshold: float) -> Candidate:
    if len(sentences) < 2:
        return candidate
    mine = [scores[_key(candidate, n)] for n in range(len(sentences))]
    top = mine.index(max(mine))
    stays = [n for n, score in enumerate(mine) if n == top or score >= threshold]
    if len(stays) == len(sentences):
        return candidate
    passage = candidate.passage.with_text(_joined(sentences, stays))
    return replace(candidate, passage=passage, tokens=None, sentences=tuple(stays))


def _key(candidate: Candidate, n: int) -> str:
    return f"{candidate.id}\0{n}"


def _joined(sentences: Sequence[str], stays: Sequence[int]) -> str:
    made: list[str] = []
    before = -1
    for n in stays:
        if n > before + 1:
            made.append(GAP)
        made.append(sentences[n].strip())
        before = n
    if before < len(sentences) - 1:
        made.append(GAP)
    return " ".join(made)
