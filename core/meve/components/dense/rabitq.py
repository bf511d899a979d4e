"""The index for more vectors than memory holds: a bit per number in memory, the vectors themselves in files."""

from typing import Any

import numpy as np

from meve.components._array_files import Arrays
from meve.components.dense._faiss_index import (
    FaissIndex,
    MaskArray,
    PositionArray,
    _IndexState,
    build_selector,
    faiss,
)
from meve.components.dense._mapped_vectors import MappedVectors, copy_vectors
from meve.components.dense.ivf import (
    SAMPLE_PER_LIST,
    check_lists,
    count_lists,
    count_probes,
    is_outgrown,
    limit_training,
)
from meve.errors import ConfigurationError, IndexCorruptError
from meve.types import FloatArray

LEAST_RESCORED = 200
"""So many vectors are compared at least, however few are wanted."""
QUERY_BITS = 8
"""The bits of each number of a query while codes are compared; with floats, a search takes some fifty times as long."""


class _Codes:
    """The codes of vectors in inverted lists, and a rotation (d, d) that spreads each vector over all its numbers."""

    def __init__(self, dimension: int, lists: int, rotation: FloatArray | None = None) -> None:
        if rotation is None:
            rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((dimension, dimension)))[0]
        self.rotation = np.ascontiguousarray(rotation, dtype=np.float32)
        self.centroids = faiss.IndexFlatIP(dimension)
        self.index = faiss.IndexIVFRaBitQ(self.centroids, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        limit_training(self.index)

    def train(self, sample: FloatArray) -> None:
        self.index.train(sample @ self.rotation)

    def add(self, vectors: FloatArray) -> None:
        self.index.add(vectors @ self.rotation)

    def search(self, query: FloatArray, k: int, probes: int, mask: MaskArray | None) -> PositionArray:
        parameters = faiss.IVFRaBitQSearchParameters(nprobe=probes, sel=build_selector(mask))
        parameters.qb = QUERY_BITS
        _, neighbours = self.index.search((query @ self.rotation)[None], k, params=parameters)
        positions: PositionArray = neighbours[0]
        return positions[positions >= 0]

    def to_arrays(self) -> Arrays:
        lists, size = self.index.invlists, self.index.code_size
        sizes = np.array([lists.list_size(n) for n in range(lists.nlist)], dtype=np.int64)
        codes, ids = [np.empty(0, dtype=np.uint8)], [np.empty(0, dtype=np.int64)]
        for n, count in enumerate(sizes.tolist()):
            if count:
                codes.append(faiss.rev_swig_ptr(lists.get_codes(n), count * size))
                ids.append(faiss.rev_swig_ptr(lists.get_ids(n), count))
        return {
            "rotation": self.rotation,
            "centroids": self.centroids.reconstruct_n(0, len(sizes)),
            "sizes": sizes,
            "codes": np.concatenate(codes),
            "ids": np.concatenate(ids),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, dimension: int, count: int) -> "_Codes":
        """Read what `to_arrays` returned for so many vectors. FAISS reads no file and no bytes of its own format.

        Raises:
            IndexCorruptError: arrays of other shapes, or codes that aren't one for each vector.
        """
        sizes, ids, codes = arrays["sizes"], arrays["ids"], arrays["codes"]
        rotation = _check_numbers(arrays["rotation"], (dimension, dimension))
        centroids = _check_numbers(arrays["centroids"], (len(sizes), dimension))
        made = cls(dimension, len(centroids), rotation)
        size = made.index.code_size
        is_whole = (
            [each.dtype.str for each in (sizes, ids, codes)] == ["<i8", "<i8", "|u1"]
            and sizes.shape == (len(centroids),)
            and sizes.min() >= 0
            and int(sizes.sum()) == count
            and codes.shape == (count * size,)
            and np.array_equal(np.sort(ids), np.arange(count))
        )
        if not is_whole:
            raise IndexCorruptError("the index's codes don't match its vectors: index the texts again")
        made.centroids.add(centroids)
        made.index.is_trained = True
        end = 0
        for n, length in enumerate(sizes.tolist()):
            start, end = end, end + length
            listed, coded = ids[start:end], codes[start * size : end * size]
            made.index.invlists.add_entries(n, length, faiss.swig_ptr(listed), faiss.swig_ptr(coded))
        made.index.ntotal = count
        return made


def _check_numbers(array: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Check that an array of this shape holds numbers.

    Raises:
        IndexCorruptError: it doesn't.
    """
    if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
        raise IndexCorruptError(f"the index must hold numbers of shape {shape}, got {array.dtype} of {array.shape}")
    return np.ascontiguousarray(array)


class _Content:
    """The vectors of an index by position, and their codes once it is trained."""

    def __init__(self, vectors: MappedVectors, codes: _Codes | None = None) -> None:
        self.vectors, self.codes = vectors, codes

    @property
    def ntotal(self) -> int:
        return len(self.vectors)


class RabitqIndex(FaissIndex):
    """An inverted file of codes of a bit per number, for more vectors than memory holds.

    A search finds more codes than it needs, and compares their vectors, which stand in a file that is mapped into
    memory: that of the saved index, and a temporary one for what was added since. `TMPDIR` names the folder
    of the temporary one. The index is trained once an add brings enough vectors; until then it compares all, exactly.

    Args:
        dimension: the length d of a vector.
        lists: the number of lists, at least 1; None for about 4 · sqrt(n), chosen again as the index grows.
        probes: how many lists a search reads, at least 1; None for a quarter, and at least 8. A filter increases it.
        rescored: how many vectors are compared for each that is wanted, at least 1; 200 in any case. Vectors of less
            than a hundred numbers need more.

    Raises:
        ConfigurationError: a setting is too small.

    Source: Gao and Long, RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound (2024).
    """

    kind = "rabitq"
    mapped = ("vectors",)

    def __init__(
        self, dimension: int, *, lists: int | None = None, probes: int | None = None, rescored: int = 20
    ) -> None:
        check_lists(lists, probes)
        if rescored < 1:
            raise ConfigurationError(f"rescored must be at least 1, got {rescored}")
        self._lists, self._probes, self._rescored = lists, probes, rescored
        super().__init__(dimension)

    @property
    def trained(self) -> bool:
        """Whether the index is trained. A trained index searches by codes, another one compares all vectors."""
        return self._index.codes is not None

    def _build(self, vectors: FloatArray) -> _Content:
        stored = MappedVectors(self.dimension)
        if len(vectors):
            stored.append(vectors)
        return _Content(stored, self._encode(stored))

    def _encode(self, vectors: MappedVectors) -> _Codes | None:
        """Return the codes of all vectors; None for too few."""
        count = len(vectors)
        lists = count_lists(count, self._lists)
        if not lists:
            return None
        codes = _Codes(self.dimension, lists)
        random = np.random.default_rng(0)
        sample = random.choice(count, min(count, SAMPLE_PER_LIST * lists), replace=False, shuffle=False)
        codes.train(vectors.read(np.sort(sample)))
        for part in vectors.read_parts(np.arange(count)):
            codes.add(part)
        return codes

    def _add_vectors(self, vectors: FloatArray) -> _Content:
        content: _Content = self._index
        content.vectors.append(vectors)
        lists = content.codes.index.nlist if content.codes else 0
        if is_outgrown(content.ntotal, lists, self._lists):
            return _Content(content.vectors, self._encode(content.vectors))
        if content.codes:
            content.codes.add(vectors)
        return content

    def _rebuild(self) -> _IndexState:
        rows = self._rows.without_holes()
        vectors = copy_vectors(self._index.vectors, np.flatnonzero(self._rows.alive))
        return _IndexState(rows, _Content(vectors, self._encode(vectors)), rows.size)

    def _candidates(self, query: FloatArray, k: int, mask: MaskArray | None, share: float) -> PositionArray:
        codes: _Codes | None = self._index.codes
        if codes is None:
            return np.empty(0, dtype=np.int64)
        depth = max(LEAST_RESCORED, k * self._rescored)
        return codes.search(query, depth, count_probes(codes.index.nlist, self._probes, share, 4), mask)

    def _get_vectors(self, positions: PositionArray) -> FloatArray:
        vectors: MappedVectors = self._index.vectors
        return vectors.read(positions)

    def _to_arrays(self, index: _Content) -> Arrays:
        return {"vectors": index.vectors.as_one(), **(index.codes.to_arrays() if index.codes else {})}

    def _from_arrays(self, arrays: Arrays) -> _Content:
        vectors = arrays["vectors"]
        if vectors.dtype != np.float32 or vectors.shape != (len(vectors), self.dimension):
            raise IndexCorruptError(f"the index's vectors have another type or shape: {vectors.dtype} {vectors.shape}")
        codes = _Codes.from_arrays(arrays, self.dimension, len(vectors)) if "codes" in arrays else None
        return _Content(MappedVectors(self.dimension, vectors), codes)

    def _options(self) -> dict[str, Any]:
        return {"lists": self._lists, "probes": self._probes, "rescored": self._rescored}
