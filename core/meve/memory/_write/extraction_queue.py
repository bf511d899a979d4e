"""Runs extractors that call a model in a thread of the memory, one after the other."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_WAITING = 1_024
"""Turns that wait for the model; later ones are left to the rules."""


class ExtractionQueue(Generic[T]):
    """The turns that wait for a model. Those that still wait when the process ends are left to the rules."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._waiting: set[str] = set()
        self._forgotten: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()

    def submit(self, name: str, work: Callable[[], T]) -> "Future[T] | None":
        """Run work in the thread; None if work of this name waits, too much waits, or the memory is closed."""
        with self._lock:
            if self._closed or name in self._waiting or len(self._waiting) >= MAX_WAITING:
                return None
            self._threads = self._threads or ThreadPoolExecutor(1, "meve-extraction")
            self._waiting.add(name)
            future = self._threads.submit(work)
        future.add_done_callback(lambda _: self._end(name))
        return future

    def count_forgotten(self, user: str) -> int:
        """Return how often this process forgot a user, or one of their sessions."""
        return self._forgotten[user]

    def forget(self, user: str) -> None:
        """Let nothing be written of the user's turns that wait. Call it before records are erased."""
        with self._lock:
            self._forgotten[user] += 1

    def close(self) -> None:
        """Wait for the turns that were given, and take no more."""
        with self._lock:
            self._closed = True
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    def _end(self, name: str) -> None:
        with self._lock:
            self._waiting.discard(name)
