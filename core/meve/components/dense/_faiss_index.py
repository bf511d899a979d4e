"""What the three FAISS indexes share: row keys, checks, tombstones, exact search over a few, ranking, a file."""

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
from meve.components._array_files import report_corruption, read_arrays, write_arrays
from meve.components._row_map import RowMap, as_row_array, select_top
from meve.errors import IndexCorruptError, VectorError
from meve.types import FloatArray, RowArray

faiss: Any = _faiss
"""FAISS, untyped: the types that it ships know neither its selectors nor most of its indexes."""

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

EXACT_ROWS = 1_000
"""So few vectors are compared one by one, whatever the index: it is as fast, and it is exact."""
EXACT_SHARE = 0.05
"""The same for a filter that leaves at most this share: below it, a graph or a list walks past too much in vain."""
DEAD_SHARE = 0.25
"""Removed vectors stay as tombstones until they are more than this share of all positions; then comes a rebuild."""
_CHUNK = 1 << 15


@dataclass(slots=True, eq=False)
class _IndexState:
    """What an index holds, in one piece, so that one assignment puts another in its place."""

    rows: RowMap
    """The positions that are given out; no more than FAISS has vectors."""
    index: Any
    """FAISS's own, which keeps the vectors even where it was interrupted while it linked or listed them."""
    indexed_count: int
    """With how many vectors FAISS finished its work; -1 while it's at it, and after it was interrupted."""
    vectors_view: FloatArray | None = None
    """FAISS's own vectors, shape (n, d), which the next add may move; None until somebody looks, and after a change."""

    @property
    def is_usable(self) -> bool:
        """Whether FAISS may be asked; otherwise something was interrupted, and only the vectors are to be relied on."""
        return self.indexed_count == self.rows.size


class FaissIndex(ABC):
    """Vectors in FAISS at positions 0, 1, 2, …, compared by inner product; a `DenseIndex` for what derives from it.

    Searches may run in several threads at once, as long as nobody writes meanwhile. Whatever found a vector, its score
    is computed in one way, so that equal vectors have equal scores in every index, filtered or not.

    Whatever interrupts an add or a removal, a KeyboardInterrupt or a lack of memory, it's made as a whole or not at
    all. An add that raises isn't made; FAISS may have been stopped halfway in it, and from then on all vectors are
    compared, until the next add builds the index anew. A removal is made before the rebuild that it may bring about,
    and stays made if that is interrupted; where memory doesn't suffice for it, a later removal tries again.
    """

    kind: ClassVar[str]

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise VectorError(f"dimension is {dimension!r}: give a whole number of at least 1")
        self._dimension = dimension
        self._state = _IndexState(RowMap(), self._build(np.empty((0, dimension), dtype=np.float32)), 0)

    @property
    def _rows(self) -> RowMap:
        return self._state.rows

    @property
    def _index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        return self._state.index

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        return self._dimension

    def __len__(self) -> int:
        """How many vectors it holds."""
        return len(self._rows)

    def add(self, rows: RowArray, vectors: FloatArray) -> None:
        """Take in vectors (n, d) under new row keys (n,); the very next search sees them.

        Raises:
            VectorError: wrong dimension or number of vectors, NaN or infinity; nothing is taken in.
            DuplicateIdError: a row key that is taken or given twice; nothing is taken in.
        """
        keys = self._rows.check_new(rows)
        new_vectors = _checked(vectors, (len(keys), self._dimension))
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
        """Forget these rows; the very next search doesn't see them.

        Raises:
            UnknownIdError: a row that isn't there; nothing is forgotten.
        """
        self._rows.remove(rows)
        if self._rows.hole_count > DEAD_SHARE * self._rows.size:
            with suppress(MemoryError, RuntimeError):  # FAISS's own; the removal is made, and the rebuild can wait
                self._state = self._rebuild()

    def search(self, vector: FloatArray, k: int, allowed: RowArray | None = None) -> tuple[RowArray, FloatArray]:
        """The k rows of the largest inner product with `vector` (d,), best first, equal ones by row.

        Always as many as there are, up to k: where the index itself comes back short, all vectors are compared.

        Args:
            vector: the query, shape (d,).
            k: how many at most.
            allowed: row keys to choose from, shape (n,); those that aren't there don't matter.

        Raises:
            VectorError: wrong dimension, NaN or infinity.
        """
        query = _checked(vector, (self._dimension,))
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
        """The stored vectors, float32 of shape (n, d), in the order given.

        Raises:
            UnknownIdError: a row that isn't there.
        """
        return self._get_vectors(self._rows.find(as_row_array(rows)))

    def save(self, path: Path) -> None:
        """Write everything to one new file: FAISS's own bytes, the row keys and the tombstones.

        Raises:
            StorageError: the file can't be written.
        """
        state = self._state if self._state.is_usable else self._rebuild()
        header = {"dimension": self._dimension, "options": self._options()}
        index = faiss.serialize_index(state.index)
        write_arrays(path, self.kind, header, {"index": index, "rows": state.rows.rows, "alive": state.rows.alive})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read back what `save` wrote.

        Raises:
            IndexNotFoundError: no such file.
            IndexCorruptError: a file that is cut short, altered, or no such file at all.
            IndexMismatchError: an index of another kind or format.
        """
        header, arrays = read_arrays(path, cls.kind)
        with report_corruption(path):
            index_object = cls(header["dimension"], **header["options"])
            index = faiss.deserialize_index(arrays["index"])
            index_object._state = _IndexState(RowMap(arrays["rows"], arrays["alive"]), index, index.ntotal)
            if index.d != index_object._dimension or not index_object._state.is_usable:
                raise IndexCorruptError(f"{path} is damaged: its vectors and its row keys don't fit together")
        return index_object

    @abstractmethod
    def _build(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        """A FAISS index that holds these vectors (n, d), and no others, at positions 0 to n - 1."""

    @abstractmethod
    def _candidates(self, query: FloatArray, k: int, mask: Mask | None, share: float) -> Positions:
        """At least k positions that the mask lets through, the best among them, or fewer where it can't tell.

        Args:
            query: shape (d,).
            k: how many are wanted.
            mask: which positions may be found, shape (size,); None for all.
            share: which share of the positions that is, in (0, 1].
        """

    def _get_vectors(self, positions: Positions) -> FloatArray:
        """A copy of the vectors at these positions, shape (n, d)."""
        state = self._state
        vectors_view = state.vectors_view
        if vectors_view is None:
            vectors_view = _flat_view(self._flat_index(), self._dimension)
            if state.indexed_count >= 0:
                state.vectors_view = vectors_view
        return vectors_view[positions]

    def _flat_index(self) -> Any:  # noqa: ANN401 - FAISS has no types
        """The FAISS flat index that keeps the vectors."""
        return self._index

    def _options(self) -> dict[str, Any]:
        """The keyword arguments that make an index like this one."""
        return {}

    def _add_vectors(self, vectors: FloatArray) -> Any:  # noqa: ANN401 - FAISS has no types
        """The FAISS index with these vectors (n, d) at the next positions: the same one, or another."""
        self._index.add(vectors)
        return self._index

    def _rebuild(self) -> _IndexState:
        """The same rows in the same order in a new FAISS index, without holes; changes nothing."""
        rows = self._rows.without_holes()
        return _IndexState(rows, self._build(self._get_vectors(np.flatnonzero(self._rows.alive))), rows.size)

    def _score_rows(self, query: FloatArray, positions: Positions) -> FloatArray:
        """Inner products, shape (n,). Row by row (and not by BLAS, whose blocks round equal rows differently)."""
        scores = np.empty(len(positions), dtype=np.float32)
        for start in range(0, len(positions), _CHUNK):
            part = slice(start, start + _CHUNK)
            scores[part] = np.einsum("ij,j->i", self._get_vectors(positions[part]), query)
        return scores


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Let FAISS search on the calling thread alone; other threads keep their setting.

    For one query, waking a team of threads and waiting for it costs more than it saves: on two cores a flat search of
    10,000 vectors took 16 ms with two threads and 1.1 ms with one.
    """
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _checked(vectors: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return np.ascontiguousarray(validate_vectors(vectors, shape, "the caller"))


def build_selector(mask: Mask | None) -> Any:  # noqa: ANN401 - FAISS has no types
    """A FAISS ID selector that lets through the positions where the mask is true; None lets all through."""
    return None if mask is None else faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))


def _flat_view(index: Any, dimension: int) -> FloatArray:  # noqa: ANN401 - FAISS has no types
    """The vectors of a FAISS flat index, shape (n, d), without a copy; stale after the next add."""
    if not index.ntotal:
        return np.empty((0, dimension), dtype=np.float32)
    vectors_view: FloatArray = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * dimension).reshape(-1, dimension)
    return vectors_view
