"""Files that only their owner may read and write, whatever the umask."""

import os
import stat
from contextlib import suppress
from pathlib import Path

MODE = 0o600


def create_private(path: Path) -> None:
    """Create an empty private file unless the path exists; SQLite gives the files beside it the same mode.

    If it can't be created, nothing happens: whoever opens it next gets the error.
    """
    with suppress(OSError):
        os.close(_open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL))


def write_private(path: Path, text: str) -> None:
    """Write a text to a private file; a file that exists is emptied and made private before it gets the text.

    Raises:
        OSError: it can't be written, or belongs to somebody else.
    """
    with os.fdopen(_open(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)


def replace_private(path: Path, text: str) -> None:
    """Write a text to a private file in place of the old one; a crash leaves the old one whole.

    Raises:
        OSError: it can't be written.
    """
    fresh = path.with_name(f"{path.name}.new")
    write_private(fresh, text)
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    fresh.replace(path)


def is_private(descriptor: int) -> bool:
    """Return whether nobody but its owner may read or write an open file; modes are known on POSIX only."""
    return os.name != "posix" or not stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077


def _open(path: str, flags: int) -> int:
    """Open an empty file, and set its mode if it is a regular file: the umask may have taken bits from a new one's."""
    descriptor = os.open(path, flags, MODE)
    try:
        status = os.fstat(descriptor)
        if hasattr(os, "fchmod") and stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != MODE:
            os.fchmod(descriptor, MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
