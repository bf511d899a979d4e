"""The exact index: compares the query with every vector."""

from typing import Any

import numpy as np

from meve.components.dense._faiss_index import FaissIndex, MaskArray, PositionArray, build_selector, faiss
from meve.types import FloatArray

_CLOSE = 1e-5


class FlatIndex(FaissIndex):
    """An exact index without build or tuning; the cost of a search grows with the number of vectors.

    Args:
        dimension: the length d of a vector.

    >>> index = FlatIndex(2)
    >>> index.add(np.array([7, 8]), np.array([[1, 0], [0, 1]], dtype=np.float32))
    >>> index.search(np.array([0.6, 0.8], dtype=np.float32), k=1)[0].tolist()
    [8]
    """

    kind = "flat"

    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        index = faiss.IndexFlatIP(self.dimension)
        index.add(vectors)
        return index

    def _candidates(self, query: FloatArray, k: int, mask: MaskArray | None, share: float) -> PositionArray:  # noqa: ARG002
        parameters = faiss.SearchParameters(sel=build_selector(mask))
        scores, neighbours = self._index.search(query[None], k + 1, params=parameters)
        positions: PositionArray = neighbours[0]
        # Of ties at the cut-off FAISS keeps the first it met, so the caller compares all vectors then.
        largest = float(np.linalg.norm(query) * np.linalg.norm(self._get_vectors(positions), axis=1).max())
        tied = float(scores[0, k - 1] - scores[0, k]) <= _CLOSE * largest
        return positions[:0] if tied else positions[:k]
