"""Dense (vector) indexes over FAISS: `flat` is exact, `hnsw` a graph, `ivf` an inverted file.

`rabitq` is an inverted file for more vectors than memory holds. FAISS loads on use.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from meve.errors import ConfigurationError
from meve.ports import DenseIndex

if TYPE_CHECKING:
    from meve.components.dense._faiss_index import FaissIndex

__all__ = ["FLAT_UP_TO", "HNSW_UP_TO", "DenseKind", "dense_class", "make_dense"]

DenseKind: TypeAlias = Literal["auto", "flat", "hnsw", "ivf", "rabitq"]

FLAT_UP_TO = 50_000
"""An exact search of 50,000 vectors of 384 values takes about 10 ms, less than embedding the query."""
HNSW_UP_TO = 500_000
"""HNSW searches fastest, but takes minutes to build beyond this size; an inverted file builds several times faster."""


def make_dense(kind: "DenseKind | DenseIndex", dimension: int, expected: int) -> DenseIndex:
    """Return an empty index for vectors of length `dimension`, or the ready-made index itself.

    Args:
        kind: `auto` chooses by size: flat to 50,000 vectors, hnsw to 500,000, ivf beyond.
        dimension: the length d of a vector.
        expected: about how many vectors there will be.

    Raises:
        ConfigurationError: an unknown kind, or a ready-made index of another dimension.
    """
    if not isinstance(kind, str):
        if kind.dimension != dimension:
            raise ConfigurationError(
                f"the index takes vectors of {kind.dimension} values, but the embedder makes {dimension}"
            )
        return kind
    if kind == "auto":
        kind = "flat" if expected <= FLAT_UP_TO else "hnsw" if expected <= HNSW_UP_TO else "ivf"
    return dense_class(kind)(dimension)


def dense_class(kind: str) -> "type[FaissIndex]":
    """Return the index class of a kind other than `auto`; its `load` reads saved indexes.

    Raises:
        ConfigurationError: an unknown kind.
    """
    from meve.components.dense.flat import FlatIndex
    from meve.components.dense.hnsw import HnswIndex
    from meve.components.dense.ivf import IvfIndex
    from meve.components.dense.rabitq import RabitqIndex

    for index in (FlatIndex, HnswIndex, IvfIndex, RabitqIndex):
        if kind == index.kind:
            return index
    raise ConfigurationError(f"dense index must be one of {', '.join(get_args(DenseKind))}, got {kind!r}")
