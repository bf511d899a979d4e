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
        self._guard = threading.Lock()
        self._here = threading.local()

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a call returns; context variables are those of the caller."""
        if getattr(self._here, "working", False):  # a worker that waited for a worker might wait for ever
            return call(*args, **kwargs)
        work = partial(contextvars.copy_context().run, call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool(), work)

    def close(self) -> None:
        """Start nothing more; what runs ends by itself."""
        with self._guard:
            if self._threads is not None:
                self._threads.shutdown(wait=False)
                self._threads = None

    def _pool(self) -> ThreadPoolExecutor:
        with self._guard:
            if self._threads is None or self._process != os.getpid():  # threads don't come along into a fork
                self._process = os.getpid()
                self._threads = ThreadPoolExecutor(self._workers, "meve-memory", self._begin)
            return self._threads

    def _begin(self) -> None:
        self._here.working = True
