"""Opens files from elsewhere to read them: a pipe or a device in place of a file can't make the reader wait."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

_OTHERS = (
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)
"""Files that aren't read, since reading might never end; each with its name."""


def find_problem(status: os.stat_result) -> str:
    """Return why a file isn't read; empty for a regular file."""
    return next((f"not a regular file: {name}" for is_kind, name in _OTHERS if is_kind(status.st_mode)), "")


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file to read its bytes; links are followed.

    Raises:
        OSError: it can't be opened, or is a pipe, a socket, a device or a folder.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        if problem := find_problem(os.fstat(file.fileno())):
            raise OSError(problem)
        yield file


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
