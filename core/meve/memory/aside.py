"""Where async callers let a memory work: in few threads of its own, beside their event loop."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 2
"""Each thread that computes may keep the loop's waiting for one switch interval (5 ms) at a time: few is quick."""


class Aside:
    """Runs calls beside the event loop. Its threads are started by the first call.

    Args:
        workers: how many at once; others wait their turn without holding up the loop.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._workers = workers
        self._threads: ThreadPoolExecutor | None = None
        self._guard = Lock()

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a call returns; context variables are those of the caller."""
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
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="meve-memory")
            return self._threads
