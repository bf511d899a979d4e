"""The inverted file index: vectors in lists by nearest centroid, of which a search reads a few."""

import math
from typing import Any

import numpy as np

from meve.components.dense._faiss_index import FaissIndex, MaskArray, PositionArray, build_selector, faiss
from meve.errors import ConfigurationError
from meve.types import FloatArray

POINTS_PER_LIST = 39
"""The minimum number of training vectors per list; FAISS warns below it."""
TRAIN_FROM = 10_000
"""With an automatic number of lists, the number of vectors at which the index is first trained."""
TRAIN_AGAIN = 4
"""The growth since the last training at which the index is trained again."""
SAMPLE_PER_LIST = 48
"""Training vectors per list. FAISS's default of 256 takes half an hour for a million vectors."""
ROUNDS = 10
"""Iterations of k-means, few because training is slow; FAISS's default is 25."""


class IvfIndex(FaissIndex):
    """An inverted file: each list holds the vectors around one centroid; a search reads the nearest lists.

    The index is trained on its own vectors once an add brings enough of them; until then it compares all, exactly.

    Args:
        dimension: the length d of a vector.
        lists: the number of lists, at least 1; None for about 4 · sqrt(n), chosen again as the index grows.
        probes: how many lists a search reads, at least 1; None for a sixteenth, and at least 8. A filter increases it.

    Raises:
        ConfigurationError: a setting is too small.

    Source: Sivic and Zisserman, Video Google (2003); Johnson, Douze and Jégou, Billion-Scale Similarity Search (2019).
    """

    kind = "ivf"

    def __init__(self, dimension: int, *, lists: int | None = None, probes: int | None = None) -> None:
        check_lists(lists, probes)
        self._lists = lists
        self._probes = probes
        super().__init__(dimension)

    @property
    def trained(self) -> bool:
        """Whether the index has lists; until then it is exact."""
        return isinstance(self._index, faiss.IndexIVF)

    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        lists = count_lists(len(vectors), self._lists)
        if not lists:
            index = faiss.IndexFlatIP(self.dimension)
        else:
            quantizer = faiss.IndexFlatIP(self.dimension)
            index = faiss.IndexIVFFlat(quantizer, self.dimension, lists, faiss.METRIC_INNER_PRODUCT)
            index.set_direct_map_type(faiss.DirectMap.Array)
            limit_training(index)
            index.train(vectors)
        index.add(vectors)
        return index

    def _add_vectors(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        self._index.add(vectors)
        return self._build(self._get_vectors(np.arange(self._index.ntotal))) if self._outgrown() else self._index

    def _outgrown(self) -> bool:
        return is_outgrown(self._index.ntotal, self._index.nlist if self.trained else 0, self._lists)

    def _candidates(self, query: FloatArray, k: int, mask: MaskArray | None, share: float) -> PositionArray:
        if not self.trained:
            return np.empty(0, dtype=np.int64)
        probes = count_probes(self._index.nlist, self._probes, share, 16)
        parameters = faiss.SearchParametersIVF(nprobe=probes, sel=build_selector(mask))
        _, neighbours = self._index.search(query[None], k, params=parameters)
        positions: PositionArray = neighbours[0]
        return positions[positions >= 0]

    def _get_vectors(self, positions: PositionArray) -> FloatArray:
        if self.trained:
            vectors: FloatArray = self._index.reconstruct_batch(positions)
            return vectors
        return super()._get_vectors(positions)

    def _options(self) -> dict[str, Any]:
        return {"lists": self._lists, "probes": self._probes}


def check_lists(lists: int | None, probes: int | None) -> None:
    """Check the settings of an inverted file.

    Raises:
        ConfigurationError: a setting is too small.
    """
    if min(lists or 1, probes or 1) < 1 or 0 in (lists, probes):
        raise ConfigurationError(f"lists and probes must be at least 1, or None, got {lists} and {probes}")


def count_lists(count: int, lists: int | None) -> int:
    """Return the number of lists for so many vectors, given the wanted number or None; 0 for too few vectors."""
    if count < (TRAIN_FROM if lists is None else POINTS_PER_LIST * lists):
        return 0
    return lists or min(int(4 * math.sqrt(count)), count // POINTS_PER_LIST)


def count_probes(lists: int, probes: int | None, share: float, part: int) -> int:
    """Return how many lists to read if a share of the vectors, in (0, 1], is allowed; by default one of `part`."""
    return min(lists, math.ceil((probes or max(8, lists // part)) / share))


def limit_training(index: Any) -> None:  # noqa: ANN401 - FAISS has no types
    """Limit the training vectors and the rounds of an inverted file."""
    index.cp.max_points_per_centroid, index.cp.niter = SAMPLE_PER_LIST, ROUNDS


def is_outgrown(count: int, trained: int, lists: int | None) -> bool:
    """Return whether an index of so many vectors must be trained, or again.

    Args:
        count: the number of vectors.
        trained: the number of lists that it has, 0 if it is untrained.
        lists: the wanted number, or None.
    """
    if not trained:
        return count_lists(count, lists) > 0
    # trained with lists = min(4 sqrt(n), n / 39), so n was at least (lists / 4)² then
    return lists is None and count >= TRAIN_AGAIN * max(TRAIN_FROM, ((trained + 1) / 4) ** 2)
