"""Where async callers let a memory work: in a thread of its own, beside their event loop."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 1
"""Each thread that computes may keep the loop's waiting for one switch interval (5 ms) and more; writes wait for one
another in any case. See benchmarks/memory_overhead.py."""


class Aside:
    """Runs calls beside the event loop. Its threads are started by the first call.

    Args:
        workers: how many at once; others wait their turn without holding up the loop.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._workers = workers
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0
        self._closed = False
        self._guard = threading.Lock()
        self._here = threading.local()

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a call returns; context variables are those of the caller. After `close` it works here and now."""
        if getattr(self._here, "working", False):  # a worker that waited for a worker might wait for ever
            return call(*args, **kwargs)
        work = partial(contextvars.copy_context().run, call, *args, **kwargs)
        with self._guard:
            threads = self._pool()
            done = None if threads is None else asyncio.get_running_loop().run_in_executor(threads, work)
        return call(*args, **kwargs) if done is None else await done

    def close(self) -> None:
        """Start nothing more; what runs ends by itself."""
        with self._guard:
            self._closed = True
            if self._threads is not None:
                self._threads.shutdown(wait=False)
                self._threads = None

    def _pool(self) -> ThreadPoolExecutor | None:
        """Whose threads work; None once it is closed."""
        if not self._closed and (self._threads is None or self._process != os.getpid()):  # a fork has no threads
            self._process = os.getpid()
            self._threads = ThreadPoolExecutor(self._workers, "meve-memory", self._begin)
        return self._threads

    def _begin(self) -> None:
        self._here.working = True
