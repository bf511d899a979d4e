"""The inverted file: vectors in lists by nearest centroid, of which a search reads a few. Builds fast, stays lean."""

import math
from typing import Any

import numpy as np

from meve.components.dense._faiss_index import FaissIndex, Mask, Positions, faiss, selector
from meve.errors import ConfigurationError
from meve.types import FloatArray

POINTS_PER_LIST = 39
"""Fewer training vectors a list than this, and FAISS calls the centroids badly placed."""
TRAIN_FROM = 10_000
"""Where the number of lists is left to the index, it trains itself from so many vectors on …"""
TRAIN_AGAIN = 4
"""… and again when it has grown by this factor."""
SAMPLE_PER_LIST = 48
"""Vectors a list to train on. FAISS would take up to 256, and half an hour for a million; lists need only be even."""
ROUNDS = 10
"""Of k-means, for the same reason; FAISS would take 25."""


class IvfIndex(FaissIndex):
    """Vectors in lists, each around a centroid; a search reads the lists whose centroids are nearest.

    Trains itself on what it holds when an add brings it enough vectors; until then it compares them all, exactly.

    Args:
        dimension: the length d of a vector.
        lists: how many lists, at least 1; None for about 4 · sqrt(n), chosen anew as the index grows.
        probes: how many lists a search reads, at least 1; None for one in sixteen, and at least 8. A filter widens it.

    Raises:
        ConfigurationError: a setting that is too small.

    Source: Sivic and Zisserman, Video Google (2003); Johnson, Douze and Jégou, Billion-Scale Similarity Search (2019).
    """

    kind = "ivf"

    def __init__(self, dimension: int, *, lists: int | None = None, probes: int | None = None) -> None:
        if min(lists or 1, probes or 1) < 1 or 0 in (lists, probes):
            raise ConfigurationError(f"lists={lists}, probes={probes}: give whole numbers of at least 1, or None")
        self._lists = lists
        self._probes = probes
        super().__init__(dimension)

    @property
    def trained(self) -> bool:
        """Whether it has lists already; until then it is exact."""
        return isinstance(self._index, faiss.IndexIVF)

    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        count = len(vectors)
        if count < (TRAIN_FROM if self._lists is None else POINTS_PER_LIST * self._lists):
            index = faiss.IndexFlatIP(self._dimension)
        else:
            lists = self._lists or min(int(4 * math.sqrt(count)), count // POINTS_PER_LIST)
            quantizer = faiss.IndexFlatIP(self._dimension)
            index = faiss.IndexIVFFlat(quantizer, self._dimension, lists, faiss.METRIC_INNER_PRODUCT)
            index.set_direct_map_type(faiss.DirectMap.Array)
            index.cp.max_points_per_centroid, index.cp.niter = SAMPLE_PER_LIST, ROUNDS
            index.train(vectors)
        index.add(vectors)
        return index

    def _extended(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        self._index.add(vectors)
        return self._build(self._stored(np.arange(self._index.ntotal))) if self._outgrown() else self._index

    def _outgrown(self) -> bool:
        count: int = self._index.ntotal
        if not self.trained:
            return count >= (TRAIN_FROM if self._lists is None else POINTS_PER_LIST * self._lists)
        # lists = 4 sqrt(n), or n / 39 where that is less, when trained; so n then was at least (lists / 4)².
        return self._lists is None and count >= TRAIN_AGAIN * max(TRAIN_FROM, ((self._index.nlist + 1) / 4) ** 2)

    def _candidates(self, query: FloatArray, k: int, mask: Mask | None, share: float) -> Positions:
        if not self.trained:
            return np.empty(0, dtype=np.int64)
        lists: int = self._index.nlist
        probes = min(lists, math.ceil((self._probes or max(8, lists // 16)) / share))
        parameters = faiss.SearchParametersIVF(nprobe=probes, sel=selector(mask))
        _, found = self._index.search(query[None], k, params=parameters)
        positions: Positions = found[0]
        return positions[positions >= 0]

    def _stored(self, positions: Positions) -> FloatArray:
        if self.trained:
            vectors: FloatArray = self._index.reconstruct_batch(positions)
            return vectors
        return super()._stored(positions)

    def _options(self) -> dict[str, Any]:
        return {"lists": self._lists, "probes": self._probes}
