"""Chooses the pieces of a long passage to read, by the words that they share with the query."""

from collections.abc import Sequence

import numpy as np

from meve.components.lexical.bm25 import Bm25Index
from meve.types import RowArray


def choose_pieces(query: str, pieces: Sequence[str], starts: Sequence[int], limit: int | None) -> RowArray:
    """Return the indices of the pieces to read, at most `limit` of each passage, in order.

    The pieces of a passage are ranked by BM25 with statistics of that passage, so the choice doesn't depend on other
    passages. Pieces without a word of the query follow in their order. If no piece has one, all are chosen.

    Args:
        query: the question.
        pieces: the pieces of all passages, in order.
        starts: the index of the first piece of each passage.
        limit: the most pieces of a passage; None for all.
    """
    chosen: list[int] = []
    for first, last in zip(starts, [*starts[1:], len(pieces)], strict=True):
        every = list(range(first, last))
        best = _find_best(query, pieces[first:last], limit) if limit is not None and last - first > limit else []
        ranked = dict.fromkeys([*(first + n for n in best), *every])
        chosen += sorted(list(ranked)[:limit]) if best else every
    return np.array(chosen, dtype=np.int64)


def _find_best(query: str, pieces: Sequence[str], limit: int) -> list[int]:
    """Return the places of at most `limit` pieces that share a word with the query, best first."""
    index = Bm25Index()
    index.add(np.arange(len(pieces)), pieces)
    places: list[int] = index.search(query, limit)[0].tolist()
    return places
