"""Where the bytes of a key file stand: in a file, or as a file's bytes in a table of another server."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from meve._private_files import create_private
from meve.errors import KeyFileError

_pread = getattr(os, "pread", None)


class KeyBytes(Protocol):
    """Reads and writes at a position, which moves on."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object:
        """Close it. What was written without `sync` is stored then, if nothing was raised."""

    def seek(self, offset: int, /) -> int:
        """Go to a position."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Write bytes, and return how many were written."""

    def sync(self) -> None:
        """Wait until everything that was written is on the disk."""

    def size(self) -> int:
        """Return the number of bytes."""

    def close(self) -> None:
        """Close it."""


class KeyPlace(Protocol):
    """Holds the bytes of one key file. Errors are raised as KeyFileError, or as OSError, which `mapped` turns into it.

    `str` returns its full name for messages.
    """

    @property
    def name(self) -> str:
        """A short name for messages."""

    def begin(self) -> bytes:
        """Return the id of a new key file that is going to be created here, 16 bytes."""

    def find(self, file_id: str) -> bool:
        """Return whether there is a key file; where several can be, the one of this id."""

    def open(self, mode: Literal["rb", "r+b"]) -> KeyBytes:
        """Open it to read, or to read and write."""

    def peek(self, at: int, size: int) -> bytes:
        """Return bytes, as fast as possible."""

    def close(self) -> None:
        """Close connections."""


class _File(FileIO):
    def sync(self) -> None:
        os.fsync(self.fileno())

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size


class FilePlace:
    """See `KeyPlace`."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self._descriptor: int | None = None

    def __str__(self) -> str:
        return str(self.path)

    def begin(self) -> bytes:
        create_private(self.path)
        return os.urandom(16)

    def find(self, file_id: str) -> bool:  # noqa: ARG002 - a path names one
        return self.path.is_file()

    def open(self, mode: Literal["rb", "r+b"]) -> KeyBytes:
        return _File(self.path, mode)

    def peek(self, at: int, size: int) -> bytes:
        if _pread is None:
            with _File(self.path, "rb") as file:
                return read_at(file, at, size)
        if self._descriptor is None:  # each reading of the clock needs it: opening the file takes six times as long
            self._descriptor = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._descriptor)
        found: bytes = _pread(self._descriptor, size, at)
        return found

    def close(self) -> None:
        """Do nothing: the descriptor is closed with the object."""


def read_at(file: KeyBytes, at: int, size: int) -> bytes:
    """Return bytes; fewer at the end."""
    file.seek(at)
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def write_at(file: KeyBytes, at: int, data: bytes) -> None:
    """Write all these bytes."""
    file.seek(at)
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


@contextmanager
def mapped(place: KeyPlace) -> Iterator[None]:
    """Turn errors of the operating system into KeyFileError."""
    try:
        yield
    except OSError as cause:
        raise KeyFileError(
            f"{place} can't be used: {cause}; check the permissions of the file and its folder"
        ) from cause
