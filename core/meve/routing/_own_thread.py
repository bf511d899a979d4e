"""Runs blocking work for async callers in a thread of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_own_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work that may wait for a language model; the event loop's own pool has few threads, for everybody.

    The work sees the caller's context variables. If the caller is cancelled, it goes on, and its result is dropped.
    """
    context = copy_context()
    pool = ThreadPoolExecutor(1, "meve-router")
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, lambda: context.run(work, *args, **kwargs))
    finally:
        pool.shutdown(wait=False)
