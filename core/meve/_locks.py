"""Provide a lock that many readers share and one writer holds alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from meve.errors import RetrievalError


class ReadWriteLock:
    """A lock for many readers or one writer. New readers wait for a waiting writer, so it can't starve.

    A thread that reads may read again. It must not write, since it would wait for itself.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writer: int | None = None
        self._waiting = 0
        self._mine = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock for reading."""
        depth = getattr(self._mine, "depth", 0)
        if depth == 0 and self._writer != threading.get_ident():
            with self._condition:
                while self._writer is not None or self._waiting:
                    self._condition.wait()
                self._readers += 1
            counted = True
        else:
            counted = False
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth
            if counted:
                with self._condition:
                    self._readers -= 1
                    self._condition.notify_all()

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Read in this thread while another thread, which waits for this one, holds the lock for reading."""
        depth = getattr(self._mine, "depth", 0)
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock for writing.

        Raises:
            RetrievalError: this thread holds the lock for reading.
        """
        if getattr(self._mine, "depth", 0):
            raise RetrievalError("a corpus must not be changed from inside a retrieval over it: change it afterwards")
        with self._condition:
            self._waiting += 1
            try:
                while self._writer is not None or self._readers:
                    self._condition.wait()
            finally:
                self._waiting -= 1
            self._writer = threading.get_ident()
        try:
            yield
        finally:
            with self._condition:
                self._writer = None
                self._condition.notify_all()
