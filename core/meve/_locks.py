"""Many may read at once, one writes alone: what lets threads share a retriever."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from meve.errors import RetrievalError


class ReadWriteLock:
    """Readers share; a writer is alone, and once it waits no new reader gets in before it, so it can't starve.

    A thread that reads already may read again. It can't write: that would wait for itself.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writer: int | None = None
        self._waiting = 0
        self._mine = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold off writers."""
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
    def writing(self) -> Iterator[None]:
        """Hold off everybody else.

        Raises:
            RetrievalError: this thread is in the middle of a retrieval.
        """
        if getattr(self._mine, "depth", 0):
            raise RetrievalError("a corpus can't be changed from inside a retrieval over it: do it afterwards")
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
