"""Chooses the pieces of a long passage to read, by the words that they share with the query."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from meve.components.lexical.analyzers import stemmed_words
from meve.components.lexical.bm25 import Bm25Index
from meve.types import RowArray


def choose_pieces(query: str, pieces: Sequence[str], starts: Sequence[int], floor: float) -> RowArray:
    """Return the indices of the pieces to read, in order; all of a passage that shares no word with the query.

    The statistics of BM25 are those of one passage, so the choice doesn't depend on other passages.

    Args:
        query: the question.
        pieces: the pieces of all passages, in order.
        starts: the index of the first piece of each passage.
        floor: the least BM25 score of a piece to read, as a share of the best score in its passage; 0 for all pieces.
    """
    chosen = np.ones(len(pieces), dtype=np.bool_)
    for first, last in zip(starts, [*starts[1:], len(pieces)], strict=True):
        if floor > 0 and last - first > 1:
            scores = _score_pieces(query, pieces[first:last])
            chosen[first:last] = scores >= floor * scores.max()
    return np.flatnonzero(chosen)


def _score_pieces(query: str, pieces: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the BM25 score of each piece among these, shape (n,)."""
    index = Bm25Index(analyzer=stemmed_words)
    index.add(np.arange(len(pieces)), pieces)
    rows, found = index.search(query, len(pieces))
    scores = np.zeros(len(pieces), dtype=np.float32)
    scores[rows] = found
    return scores
