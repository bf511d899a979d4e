"""Checks the bytes of a FAISS index before FAISS reads them, which trusts what it reads.

FAISS's format has types that map or write a file that the bytes name (on-disk inverted lists). Only the three indexes
that MeVe writes are let through: flat, HNSW and inverted file, over vectors of 32-bit floats in memory. Sizes, links
and positions must stay within the index.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from meve.errors import IndexCorruptError

Bytes = npt.NDArray[np.uint8]

_DUMMY = 1 << 20
_FLAT, _HNSW, _IVF = b"IxFI", b"IHNf", b"IwFl"
TYPES = {"flat": (_FLAT,), "hnsw": (_HNSW,), "ivf": (_FLAT, _IVF)}
"""The types of FAISS index by kind; an inverted file is flat until it is trained."""


def check_faiss_bytes(data: npt.NDArray[Any], kind: str, dimension: int) -> None:
    """Check that bytes hold one index that `kind` writes, and nothing else.

    Args:
        data: the bytes, uint8 of shape (n,).
        kind: `flat`, `hnsw` or `ivf`.
        dimension: the length d of a vector.

    Raises:
        IndexCorruptError: another type of FAISS index, or sizes, links or positions outside the index.
    """
    if data.dtype != np.uint8 or data.ndim != 1:
        raise IndexCorruptError(f"the FAISS index must be bytes, got {data.dtype} of shape {data.shape}")
    reader = _Reader(data, dimension)
    form = reader.form(TYPES[kind])
    if form == _FLAT:
        reader.flat()
    elif form == _HNSW:
        reader.hnsw()
    else:
        reader.ivf()
    reader.check(reader.place == len(data), "bytes after its end")


class _Reader:
    def __init__(self, data: Bytes, dimension: int) -> None:
        self._data = data
        self._dimension = dimension
        self.place = 0

    def check(self, condition: object, problem: str) -> None:
        if not condition:
            raise IndexCorruptError(f"the FAISS index isn't one that MeVe writes ({problem}): index the texts again")

    def form(self, allowed: tuple[bytes, ...]) -> bytes:
        name = self._take(4).tobytes()
        self.check(name in allowed, f"type {name!r} where {' or '.join(map(repr, allowed))} is expected")
        return name

    def flat(self) -> int:
        count = self._header()
        self.check(self._number(np.uint64) == count * self._dimension, "another number of values than of vectors")
        self._take(4 * count * self._dimension)
        return count

    def hnsw(self) -> None:
        count = self._header()
        chances, widths = self._vector(np.float64), self._vector(np.int32).astype(np.int64)
        self.check(len(widths) == len(chances) + 1 and widths[0] == 0 and (np.diff(widths) > 0).all(), "its levels")
        levels, offsets = self._vector(np.int32), self._vector(np.uint64)
        links = self._vector(np.int32)
        self.check(len(levels) == count and len(offsets) == count + 1, "another number of nodes than of vectors")
        self.check(not count or (levels.min() >= 1 and levels.max() < len(widths)), "a node's level")
        ends = np.concatenate([[0], np.cumsum(widths[levels])])
        self.check((offsets == ends.astype(np.uint64)).all() and ends[-1] == len(links), "a node's links")
        self.check(not len(links) or (links.min() >= -1 and links.max() < count), "a link to no node")
        for level in range(1, int(levels.max(initial=0))):  # a link must lead to a node that has this level, too
            slots = ends[:-1][levels > level][:, None] + np.arange(widths[level], widths[level + 1])
            linked = links[slots]
            self.check((levels[linked[linked >= 0]] > level).all(), "a link to a node of a lower level")
        entry, top, *_ = (int(self._number(np.int32)) for _ in range(5))
        self.check(entry == -1 if not count else 0 <= entry < count and 0 <= top < levels[entry], "its entry point")
        self.form((_FLAT,))
        self.check(self.flat() == count, "another number of nodes than of vectors")

    def ivf(self) -> None:
        count = self._header()
        lists, _ = (int(self._number(np.uint64)) for _ in range(2))
        self.form((_FLAT,))
        self.check(self.flat() == lists, "another number of centroids than of lists")
        self.check(self._number(np.int8) == 1, "no map of positions")
        places = self._vector(np.int64)
        self.form((b"ilar",))
        self.check(int(self._number(np.uint64)) == lists, "another number of lists")
        self.check(int(self._number(np.uint64)) == 4 * self._dimension, "vectors of another size")
        sizes = self._list_sizes(lists)
        self.check(int(sizes.sum()) == count == len(places), "another number of vectors in the lists")
        numbers, within = places >> 32, places & 0xFFFFFFFF
        self.check(not count or (numbers.min() >= 0 and numbers.max() < lists), "a position in no list")
        self.check((within < sizes[numbers]).all(), "a position in no list")
        is_listed = np.zeros(count, dtype=np.bool_)
        for size in sizes.tolist():
            self._take(4 * self._dimension * size)
            ids = self._take(8 * size).view(np.int64)
            self.check(not size or (ids.min() >= 0 and ids.max() < count), "an unknown vector in a list")
            is_listed[ids] = True
        self.check(is_listed.all(), "a vector in no list")

    def _list_sizes(self, lists: int) -> npt.NDArray[np.int64]:
        is_full = self.form((b"full", b"sprs")) == b"full"
        values = self._vector(np.uint64)
        self.check((values <= len(self._data)).all(), "a list longer than the file")
        sizes = values.astype(np.int64)
        if not is_full:  # pairs of a list and its size
            pairs, sizes = sizes.reshape(-1, 2), np.zeros(lists, dtype=np.int64)
            self.check((pairs[:, 0] < lists).all() and len(np.unique(pairs[:, 0])) == len(pairs), "an unknown list")
            sizes[pairs[:, 0]] = pairs[:, 1]
        self.check(len(sizes) == lists, "another number of lists")
        return sizes

    def _header(self) -> int:
        dimension, count = int(self._number(np.int32)), int(self._number(np.int64))
        dummies = [int(self._number(np.int64)) for _ in range(2)]
        is_trained, metric = int(self._number(np.uint8)), int(self._number(np.int32))
        self.check(dimension == self._dimension, f"vectors of {dimension} values")
        self.check(0 <= count <= len(self._data), f"{count} vectors")
        self.check(dummies == [_DUMMY] * 2 and (is_trained, metric) == (1, 0), "its header")
        return count

    def _vector(self, kind: Any) -> npt.NDArray[Any]:  # noqa: ANN401
        return self._take(int(self._number(np.uint64)) * np.dtype(kind).itemsize).view(kind)

    def _number(self, kind: Any) -> Any:  # noqa: ANN401
        return self._take(np.dtype(kind).itemsize).view(kind)[0]

    def _take(self, size: int) -> Bytes:
        self.check(0 <= size <= len(self._data) - self.place, "cut short")
        self.place += size
        return self._data[self.place - size : self.place]
