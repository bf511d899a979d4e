"""Reduce passages to their title and evidence sentences before packing (phase 5, with `packing="sentences"`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from meve.pipeline.phases.verify import score_candidates
from meve.ports import Scorer
from meve.types import Candidate, Passage, Query

GAP = "…"
"""The mark of omitted sentences, within a passage and at its ends."""

SplitSentences = Callable[[str], Sequence[str]]
"""A function that returns the sentences of a text, in order."""


def condense(
    queries: Sequence[tuple[Query, str]],
    candidates: Sequence[Candidate],
    scorer: Scorer,
    split: SplitSentences,
    threshold: float,
) -> list[Candidate]:
    """Reduce each candidate to the sentences that reach the threshold, or to its best one.

    Args:
        queries: by id, the question (empty id) and the question extended by each evidence passage (the passage's id). A
            query doesn't score the sentences of its own passage. The best score of a sentence counts.
        candidates: the candidates to pack.
        scorer: the scorer of phase 2; it reads a sentence below the title of its passage.
        split: splits a text into sentences.
        threshold: the least score in [0, 1] of a sentence.
    """
    parts = {c.id: [s for s in split(c.passage.text) if s.strip()] for c in candidates}
    best: dict[str, float] = {}
    for query, evidence in queries:
        pieces = [
            Candidate(passage=Passage(id=_key(c, n), title=c.passage.title, text=text), origin="sentence")
            for c in candidates
            for n, text in enumerate(parts[c.id])
            if len(parts[c.id]) > 1 and c.id != evidence
        ]
        for piece in score_candidates(query, pieces, scorer):
            best[piece.id] = max(piece.score or 0.0, best.get(piece.id, 0.0))
    return [_reduce(c, parts[c.id], best, threshold) for c in candidates]


def _reduce(candidate: Candidate, sentences: Sequence[str], scores: dict[str, float], threshold: float) -> Candidate:
    if len(sentences) < 2:
        return candidate
    own = [scores[_key(candidate, n)] for n in range(len(sentences))]
    best = own.index(max(own))
    kept = [n for n, score in enumerate(own) if n == best or score >= threshold]
    if len(kept) == len(sentences):
        return candidate
    passage = candidate.passage.with_text(_join(sentences, kept))
    return replace(candidate, passage=passage, tokens=None, sentences=tuple(kept))


def _key(candidate: Candidate, n: int) -> str:
    return f"{candidate.id}\0{n}"


def _join(sentences: Sequence[str], kept: Sequence[int]) -> str:
    blocks: list[str] = []
    before = -1
    for n in kept:
        if n > before + 1:
            blocks.append(GAP)
        blocks.append(sentences[n].strip())
        before = n
    if before < len(sentences) - 1:
        blocks.append(GAP)
    return " ".join(blocks)
