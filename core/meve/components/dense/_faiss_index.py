"""The base of the three FAISS indexes: row keys, checks, tombstones, exact search of small selections, ties, files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import faiss as _faiss
import numpy as np
import numpy.typing as npt

from meve._vectors import validate_vectors
from meve.components._array_files import Arrays, read_arrays, report_corruption, write_arrays
from meve.components._row_map import RowMap, as_row_array, select_top
from meve.components.dense._faiss_format import check_faiss_bytes
from meve.errors import IndexCorruptError, VectorError
from meve.types import FloatArray, RowArray

faiss: Any = _faiss
"""FAISS as untyped: its own type stubs lack the selectors and most indexes."""

PositionArray = npt.NDArray[np.int64]
MaskArray = npt.NDArray[np.bool_]

EXACT_ROWS = 1_000
"""Up to this many vectors are compared one by one in any index: as fast, and exact."""
EXACT_SHARE = 0.05
"""A filter that leaves at most this share is searched exactly; a graph or a list would skip too many vectors."""
DEAD_SHARE = 0.25
"""The index is rebuilt once removed vectors (tombstones) exceed this share of all positions."""
MAX_OPTION = 1 << 20
"""The largest dimension and option that a saved index may have."""
_CHUNK = 1 << 15


@dataclass(slots=True, eq=False)
class _IndexState:
    """The content of an index, as one object that can be replaced in one assignment."""

    rows: RowMap
    """The assigned positions; at most as many as FAISS has vectors."""
    index: Any
    """The FAISS index; its vectors are intact even after an interrupted add."""
    indexed_count: int
    """The number of vectors that FAISS has fully indexed; -1 during an add, and after an interrupted one."""
    vectors_view: FloatArray | None = None
    """FAISS's own vectors, shape (n, d), which the next add may move; None until first used, and after a change."""

    @property
    def is_usable(self) -> bool:
        """Whether the FAISS index can be searched; after an interrupted add only its vectors are valid."""
        return self.indexed_count == self.rows.size


class FaissIndex(ABC):
    """The base of `DenseIndex` implementations over FAISS: vectors at positions 0, 1, 2, …, compared by inner product.

    `meve.ports.DenseIndex` describes the arguments and errors of the methods.

    Several threads may search at once while nobody writes. Scores are always computed in the same way, so equal vectors
    have equal scores in every index, filtered or not.

    An interrupted add or removal (KeyboardInterrupt, MemoryError) takes effect fully or not at all. After an
    interrupted add, searches compare all vectors until the next add rebuilds the index. A removal takes effect before
    the rebuild that it may trigger; an interrupted rebuild is retried at a later removal.
    """

    kind: ClassVar[str]
    mapped: ClassVar[tuple[str, ...]] = ()
    """The names of the saved arrays that `load` maps into memory."""

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise VectorError(f"dimension must be at least 1, got {dimension!r}")
        self.dimension = dimension
        self._state = _IndexState(RowMap(), self._build(np.empty((0, dimension), dtype=np.float32)), 0)

    @property
    def _rows(self) -> RowMap:
        return self._state.rows

    @property
    def _index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        return self._state.index

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: RowArray, vectors: FloatArray) -> None:
        """Add vectors (n, d) under new row keys (n,); the next search sees them."""
        keys = self._rows.check_new(rows)
        new_vectors = _checked(vectors, (len(keys), self.dimension))
        if not len(keys):
            return
        if not self._state.is_usable:
            self._state = self._rebuild()
        state = self._state
        state.indexed_count, state.vectors_view = -1, None
        state.index = self._add_vectors(new_vectors)
        state.indexed_count = state.index.ntotal
        state.rows.append(keys)

    def remove(self, rows: RowArray) -> None:
        """Remove these rows; the next search leaves them out."""
        self._rows.remove(rows)
        if self._rows.hole_count > DEAD_SHARE * self._rows.size:
            with suppress(MemoryError, RuntimeError):  # FAISS raises RuntimeError; the rebuild can wait
                self._state = self._rebuild()

    def search(self, vector: FloatArray, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """Return the k rows with the largest inner product with `vector` (d,), best first; ties go to the smaller row.

        Returns min(k, number of rows) rows: where FAISS returns fewer, all vectors are compared.
        """
        query = _checked(vector, (self.dimension,))
        mask = self._rows.mask(allowed)
        allowed_count = len(self._rows) if mask is None else int(np.count_nonzero(mask))
        k = min(k, allowed_count)
        if k <= 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if self._state.is_usable and allowed_count > max(EXACT_ROWS, 2 * k, EXACT_SHARE * self._rows.size):
            with use_one_thread():
                positions = self._candidates(query, k, mask, allowed_count / self._rows.size)
            if len(positions) >= k:
                return select_top(self._rows.rows[positions], self._score_rows(query, positions), k)
        all_positions = np.arange(self._rows.size) if mask is None else np.flatnonzero(mask)
        return select_top(self._rows.rows[all_positions], self._score_rows(query, all_positions), k)

    def vectors(self, rows: RowArray) -> FloatArray:
        """Return the stored vectors, float32 of shape (n, d), in the order given."""
        return self._get_vectors(self._rows.find(as_row_array(rows)))

    def save(self, path: Path) -> None:
        """Write the FAISS index, the row keys and the tombstones to one new file."""
        state = self._state if self._state.is_usable else self._rebuild()
        header = {"dimension": self.dimension, "options": self._options()}
        arrays = {"rows": state.rows.rows, "alive": state.rows.alive, **self._to_arrays(state.index)}
        write_arrays(path, self.kind, header, arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; other types of FAISS index are refused before FAISS reads them.

        Raises:
            StorageError: as `read_arrays`, and if the file holds anything else than an index of this kind.
        """
        header, arrays = read_arrays(path, cls.kind, mapped=cls.mapped)
        with report_corruption(path):
            dimension, options = header["dimension"], header["options"]
            for name, value in (("dimension", dimension), *options.items()):
                if value is not None and not (type(value) is int and 0 < value <= MAX_OPTION):
                    raise IndexCorruptError(f"{path} is damaged: {name} must be 1 to {MAX_OPTION:,}, got {value!r:.40}")
            index_object = cls(dimension, **options)
            index = index_object._from_arrays(arrays)
            index_object._state = _IndexState(RowMap(arrays["rows"], arrays["alive"]), index, index.ntotal)
            if len(arrays["alive"]) != len(arrays["rows"]) or not index_object._state.is_usable:
                raise IndexCorruptError(f"{path} is damaged: its vectors and row keys don't match")
        return index_object

    def _to_arrays(self, index: Any) -> Arrays:  # noqa: ANN401 - FAISS has no types
        """Return what `_build` made as arrays."""
        return {"index": faiss.serialize_index(index)}

    def _from_arrays(self, arrays: Arrays) -> Any:  # noqa: ANN401 - FAISS has no types
        """Return what `_to_arrays` was given.

        Raises:
            IndexCorruptError: arrays that it doesn't make.
        """
        check_faiss_bytes(arrays["index"], self.kind, self.dimension)
        return faiss.deserialize_index(arrays["index"])

    @abstractmethod
    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        """Return a FAISS index of exactly these vectors (n, d), at positions 0 to n - 1."""

    @abstractmethod
    def _candidates(self, query: FloatArray, k: int, mask: MaskArray | None, share: float) -> PositionArray:
        """Return at least k allowed positions that include the best; fewer where the index can't guarantee them.

        Args:
            query: shape (d,).
            k: how many are wanted.
            mask: which positions may be returned, shape (size,); None for all.
            share: the share of allowed positions, in (0, 1].
        """

    def _get_vectors(self, positions: PositionArray) -> FloatArray:
        """Return a copy of the vectors at these positions, shape (n, d)."""
        state = self._state
        vectors_view = state.vectors_view
        if vectors_view is None:
            vectors_view = _flat_view(self._flat_index(), self.dimension)
            if state.indexed_count >= 0:
                state.vectors_view = vectors_view
        return vectors_view[positions]

    def _flat_index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        return self._index

    def _options(self) -> dict[str, Any]:
        """Return the keyword arguments that construct an equal index."""
        return {}

    def _add_vectors(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        """Add these vectors (n, d) at the next positions and return the FAISS index, the same one or a new one."""
        self._index.add(vectors)
        return self._index

    def _rebuild(self) -> _IndexState:
        """Return the same rows in a new FAISS index without holes; changes nothing."""
        rows = self._rows.without_holes()
        return _IndexState(rows, self._build(self._get_vectors(np.flatnonzero(self._rows.alive))), rows.size)

    def _score_rows(self, query: FloatArray, positions: PositionArray) -> FloatArray:
        """Return inner products, shape (n,). Computed row by row, since BLAS blocks round equal rows differently."""
        scores = np.empty(len(positions), dtype=np.float32)
        for start in range(0, len(positions), _CHUNK):
            part = slice(start, start + _CHUNK)
            scores[part] = np.einsum("ij,j->i", self._get_vectors(positions[part]), query)
        return scores


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Let FAISS search on the calling thread alone; other threads keep their setting.

    For one query, starting a thread team costs more than it saves: on two cores a flat search of 10,000 vectors took 16
    ms with two threads and 1.1 ms with one.
    """
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _use_no_pool() -> None:
    """Let the thread that forked use no others: OpenMP would wait for those that the child doesn't have."""
    faiss.omp_set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_no_pool)


def _checked(vectors: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return np.ascontiguousarray(validate_vectors(vectors, shape, "the caller"))


def build_selector(mask: MaskArray | None) -> Any:  # noqa: ANN401 - FAISS has no types
    """Return a FAISS ID selector for the positions where the mask is true; None selects all."""
    return None if mask is None else faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))


def _flat_view(index: Any, dimension: int) -> FloatArray:  # noqa: ANN401 - FAISS has no types
    """Return a view of a FAISS flat index's vectors, shape (n, d); invalid after the next add."""
    if not index.ntotal:
        return np.empty((0, dimension), dtype=np.float32)
    vectors_view: FloatArray = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * dimension).reshape(-1, dimension)
    return vectors_view
