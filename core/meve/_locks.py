"""Provide a lock that many readers share and one writer holds alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from meve._fork_safety import GATE, refuse_torn, renew_in_child
from meve.errors import RetrievalError


class ReadWriteLock:
    """A lock for many readers or one writer. New readers wait for a waiting writer, so it can't starve.

    A thread that reads may read again. It must not write, since it would wait for itself.

    A fork waits for the writer. In the child only the thread that forked holds the lock.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writer: int | None = None
        self._waiting = 0
        self._mine = threading.local()
        self._is_changing = self._is_torn = False
        renew_in_child(self)

    def renew(self) -> None:
        """Forget the threads that a fork left behind; refuse what one of them was changing."""
        self._condition, self._waiting = threading.Condition(), 0
        self._readers = int(getattr(self._mine, "counted", False))
        if self._writer != threading.get_ident():
            self._is_torn = self._is_torn or self._is_changing
            self._writer, self._is_changing = None, False

    def _check(self) -> None:
        if self._is_torn:
            raise refuse_torn("the passages")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock for reading.

        Raises:
            RetrievalError: a fork interrupted a change.
        """
        self._check()
        depth = getattr(self._mine, "depth", 0)
        if depth == 0 and self._writer != threading.get_ident():
            with self._condition:
                while self._writer is not None or self._waiting:
                    self._condition.wait()
                self._readers += 1
            counted = self._mine.counted = True
        else:
            counted = False
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth
            if counted:
                self._mine.counted = False
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
            RetrievalError: this thread holds the lock for reading, or a fork interrupted a change.
        """
        self._check()
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
            with GATE.passing():
                self._is_changing = True
                yield
        finally:
            with self._condition:
                self._is_changing, self._writer = False, None
                self._condition.notify_all()
