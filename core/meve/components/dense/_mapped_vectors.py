"""Vectors in files that are mapped into memory, so that there may be more of them than memory holds."""

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from meve.errors import StorageError
from meve.types import FloatArray

CHUNK = 1 << 14
"""Vectors that are read at once when all are read."""


class MappedVectors:
    """An array of vectors that grows at its end: those of a saved index, and added ones in a temporary file.

    Threads may read at once. What is written beyond `len` is overwritten by the next `append`.

    Args:
        dimension: the length d of a vector.
        saved: the vectors of a saved index, shape (n, d), which are only read.
    """

    _file: BinaryIO | None = None

    def __init__(self, dimension: int, saved: FloatArray | None = None) -> None:
        first = np.empty((0, dimension), dtype=np.float32) if saved is None else saved
        self._parts: tuple[tuple[FloatArray, int], ...] = ((first, 0),)
        """Arrays, each with the position of its first vector; replaced in one assignment."""
        self._process = os.getpid()
        self.dimension = dimension

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        last, start = self._parts[-1]
        return start + len(last)

    def append(self, vectors: FloatArray) -> None:
        """Add vectors, shape (n, d).

        Raises:
            StorageError: the folder of temporary files is full or can't be written; nothing is added.
        """
        parts = self._parts
        with _report_failure():
            if self._file is None or self._process != os.getpid():  # a forked process must not write its parent's file
                self.__del__()
                self._file = tempfile.TemporaryFile(prefix="meve-vectors-", buffering=0)  # noqa: SIM115
                self._process = os.getpid()
                parts = (*parts, (vectors[:0], len(self)))
            before, start = parts[-1]
            for first in range(0, len(vectors), CHUNK):
                _write(self._file, vectors[first : first + CHUNK], before.nbytes + vectors[:first].nbytes)
            self._parts = (*parts[:-1], (_map(self._file, len(before) + len(vectors), self.dimension), start))

    def read(self, positions: npt.NDArray[np.int64]) -> FloatArray:
        """Return a copy of the vectors at these positions, shape (n, d)."""
        copied = np.empty((len(positions), self.dimension), dtype=np.float32)
        for part, start in self._parts:
            chosen = np.flatnonzero((positions >= start) & (positions < start + len(part)))
            copied[chosen] = part[positions[chosen] - start]
        return copied

    def as_one(self) -> FloatArray:
        """Return all vectors as one array, shape (n, d), which stands in a file too."""
        filled = [part for part, _ in self._parts if len(part)]
        if len(filled) > 1:
            return copy_vectors(self, np.arange(len(self))).as_one()
        return filled[0] if filled else self._parts[0][0]

    def read_parts(self, positions: npt.NDArray[np.int64]) -> Iterator[FloatArray]:
        """Return the vectors at these positions, some thousands at a time."""
        for start in range(0, len(positions), CHUNK):
            yield self.read(positions[start : start + CHUNK])


def copy_vectors(vectors: MappedVectors, positions: npt.NDArray[np.int64]) -> MappedVectors:
    """Return the vectors at these positions in a new file."""
    copied = MappedVectors(vectors.dimension)
    for part in vectors.read_parts(positions):
        copied.append(part)
    return copied


@contextmanager
def _report_failure() -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        folder = tempfile.gettempdir()
        raise StorageError(
            f"vectors can't be kept in {folder}: {cause}; TMPDIR names another folder; nothing was added"
        ) from cause


def _write(file: BinaryIO, data: FloatArray, offset: int) -> None:
    rest = data.tobytes()
    while rest:  # not through the map: a full disk would end the process
        file.seek(offset)
        written = file.write(rest)
        rest, offset = rest[written:], offset + written


def _map(file: BinaryIO, count: int, dimension: int) -> FloatArray:
    mapped = mmap.mmap(file.fileno(), count * dimension * 4, access=mmap.ACCESS_READ)
    vectors: FloatArray = np.frombuffer(mapped, dtype=np.float32).reshape(count, dimension)
    return vectors
