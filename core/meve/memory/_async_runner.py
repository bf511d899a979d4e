"""Runs calls of async callers in a thread of the memory, so that the event loop isn't blocked."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from meve._fork_safety import ForkSafeLock

P = ParamSpec("P")
T = TypeVar("T")

MAX_WORKERS = 1
"""One, since each busy thread delays the event loop by a switch interval (5 ms) or more, and writes run one at a time.
Measured with benchmarks/langchain_memory_overhead.py."""


class AsyncRunner:
    """Runs `MAX_WORKERS` calls at once in threads; other calls wait without blocking the event loop."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0
        self._closed = False
        self._lock = ForkSafeLock()
        self._local = threading.local()

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a call made with the caller's context variables; after `close`, in this thread."""
        if getattr(self._local, "is_worker", False):  # a worker that waits for a worker might deadlock
            return call(*args, **kwargs)
        work = partial(contextvars.copy_context().run, call, *args, **kwargs)
        with self._lock:
            threads = self._open_threads()
            future = None if threads is None else asyncio.get_running_loop().run_in_executor(threads, work)
        return call(*args, **kwargs) if future is None else await future

    def close(self) -> None:
        """Start no more calls in threads; running ones finish."""
        with self._lock:
            self._closed = True
            if self._threads is not None:
                self._threads.shutdown(wait=False)
                self._threads = None

    def _open_threads(self) -> ThreadPoolExecutor | None:
        if not self._closed and (self._threads is None or self._process != os.getpid()):  # a fork has no threads
            self._process = os.getpid()
            self._threads = ThreadPoolExecutor(MAX_WORKERS, "meve-memory", self._mark_worker)
        return self._threads

    def _mark_worker(self) -> None:
        self._local.is_worker = True
