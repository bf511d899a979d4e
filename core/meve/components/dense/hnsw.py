"""The graph: searches a large index in a few hundred steps, at the price of missing a neighbour now and then."""

from typing import Any

from meve.components.dense._faiss_index import FaissIndex, Mask, Positions, faiss, selector
from meve.errors import ConfigurationError
from meve.types import FloatArray


class HnswIndex(FaissIndex):
    """A navigable small-world graph: about logarithmic search, slower adds, more memory, a recall just below 1.

    FAISS can't take a node out of the graph: removed ones are passed over (a selector), and once they are more than a
    quarter of all, the graph is built anew, which takes as long as building it did. The fewer nodes a filter lets
    through, the wider the search, so that recall holds; filters that leave almost nothing are answered exactly.

    Args:
        dimension: the length d of a vector.
        m: neighbours a node keeps, at least 2; memory and recall rise with it.
        ef_construction: how widely a new node looks for neighbours.
        ef_search: how widely a search looks; never less than k.

    Raises:
        ConfigurationError: a setting that is too small.

    Source: Malkov and Yashunin, Efficient and Robust Approximate Nearest Neighbor Search Using HNSW (2018).
    """

    kind = "hnsw"

    def __init__(self, dimension: int, *, m: int = 32, ef_construction: int = 200, ef_search: int = 128) -> None:
        if min(m - 1, ef_construction, ef_search) < 1:
            raise ConfigurationError(
                f"m={m}, ef_construction={ef_construction}, ef_search={ef_search}: give m >= 2, the others >= 1"
            )
        self._m = m
        self._ef_construction = ef_construction
        self._ef_search = ef_search
        super().__init__(dimension)

    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        index = faiss.IndexHNSWFlat(self._dimension, self._m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self._ef_construction
        index.add(vectors)
        return index

    def _candidates(self, query: FloatArray, k: int, mask: Mask | None, share: float) -> Positions:
        width = max(self._ef_search, k)
        parameters = faiss.SearchParametersHNSW(efSearch=int(width / share), sel=selector(mask))
        _, found = self._index.search(query[None], k, params=parameters)
        positions: Positions = found[0]
        return positions[positions >= 0]

    def _flat(self) -> Any:  # noqa: ANN401 - FAISS has no types
        return faiss.downcast_index(self._index.storage)

    def _options(self) -> dict[str, Any]:
        return {"m": self._m, "ef_construction": self._ef_construction, "ef_search": self._ef_search}
