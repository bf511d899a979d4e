"""The HNSW graph index: fast approximate search of large collections."""

from typing import Any

from meve.components.dense._faiss_index import FaissIndex, MaskArray, PositionArray, build_selector, faiss
from meve.errors import ConfigurationError
from meve.types import FloatArray


class HnswIndex(FaissIndex):
    """A hierarchical navigable small-world graph: fast search, slower adds, more memory, recall just below 1.

    FAISS can't remove a node from the graph, so removed nodes are skipped by a selector. Once they exceed a quarter of
    all, the graph is rebuilt, which takes as long as building it. A stricter filter widens the search, so that recall
    holds; filters that leave almost nothing are searched exactly.

    Args:
        dimension: the length d of a vector.
        m: neighbours per node, at least 2; memory and recall rise with it.
        ef_construction: candidates examined when a node is added, at least 1.
        ef_search: candidates examined in a search, at least 1; never fewer than k.

    Raises:
        ConfigurationError: a setting is too small.

    Source: Malkov and Yashunin, Efficient and Robust Approximate Nearest Neighbor Search Using HNSW (2018).
    """

    kind = "hnsw"

    def __init__(self, dimension: int, *, m: int = 32, ef_construction: int = 200, ef_search: int = 128) -> None:
        if min(m - 1, ef_construction, ef_search) < 1:
            raise ConfigurationError(
                f"m must be at least 2, ef_construction and ef_search at least 1, "
                f"got {m}, {ef_construction} and {ef_search}"
            )
        self._m = m
        self._ef_construction = ef_construction
        self._ef_search = ef_search
        super().__init__(dimension)

    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        index = faiss.IndexHNSWFlat(self.dimension, self._m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._ef_construction
        index.add(vectors)
        return index

    def _candidates(self, query: FloatArray, k: int, mask: MaskArray | None, share: float) -> PositionArray:
        width = max(self._ef_search, k)
        parameters = faiss.SearchParametersHNSW(efSearch=int(width / share), sel=build_selector(mask))
        _, neighbours = self._index.search(query[None], k, params=parameters)
        positions: PositionArray = neighbours[0]
        return positions[positions >= 0]

    def _flat_index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        return faiss.downcast_index(self._index.storage)

    def _options(self) -> dict[str, Any]:
        return {"m": self._m, "ef_construction": self._ef_construction, "ef_search": self._ef_search}
