"""Runs calls of async callers in a thread of the memory, so that the event loop isn't blocked."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from meve._fork_safety import ForkSafeLock

P = ParamSpec("P")
T = TypeVar("T")

MAX_WORKERS = 1
"""One, since each busy thread delays the event loop by a switch interval (5 ms) or more, and writes run one at a time.
Measured with benchmarks/langchain_memory_overhead.py."""


class AsyncRunner:
    """Runs `MAX_WORKERS` calls at once in threads; other calls wait without blocking the event loop.

    A call whose caller is cancelled is carried out all the same, since it may be a write. If it fails then, the event
    loop's exception handler gets the error. `read` withdraws a call that hasn't begun.

    Args:
        readers: the number of threads for calls of `read`; 0 runs them in order with the other calls.
    """

    def __init__(self, readers: int = 0) -> None:
        self._readers = readers
        self._threads: dict[bool, ThreadPoolExecutor] = {}
        """By whether they are for reads."""
        self._process = 0
        self._closed = False
        self._lock = ForkSafeLock()
        self._local = threading.local()

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a call made with the caller's context variables; after `close`, in this thread."""
        work = self._start(partial(call, *args, **kwargs), is_read=False)
        return call(*args, **kwargs) if work is None else await _wait(work, withdraw=False)

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a call that changes nothing; if it is cancelled before it begins, it isn't made."""
        work = self._start(partial(call, *args, **kwargs), is_read=self._readers > 0)
        return call(*args, **kwargs) if work is None else await _wait(work, withdraw=True)

    def close(self) -> None:
        """Wait for the calls so far, and start no more in threads."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, {}
        for each in threads.values():
            each.shutdown(wait=self._process == os.getpid() and not self._is_worker)

    @property
    def _is_worker(self) -> bool:
        return getattr(self._local, "is_worker", False)

    def _start(self, call: Callable[[], T], *, is_read: bool) -> Future[T] | None:
        """Start a call in a thread; None in a worker, which might wait for itself for ever, and after `close`."""
        if self._is_worker:
            return None
        with self._lock:
            return None if self._closed else self._open_threads(is_read).submit(contextvars.copy_context().run, call)

    def _open_threads(self, is_read: bool) -> ThreadPoolExecutor:
        if self._process != os.getpid():  # a fork has no threads
            self._process, self._threads = os.getpid(), {}
        if is_read not in self._threads:
            count = self._readers if is_read else MAX_WORKERS
            self._threads[is_read] = ThreadPoolExecutor(count, "meve-memory", self._mark_worker)
        return self._threads[is_read]

    def _mark_worker(self) -> None:
        self._local.is_worker = True


class _HasRuntime(Protocol):
    @property
    def _runtime(self) -> Any: ...  # noqa: ANN401


S = TypeVar("S", bound=_HasRuntime)


def as_async(
    method: Callable[Concatenate[S, P], T], *, is_read: bool = False
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return a coroutine function that runs a method in the memory's thread."""
    name: str = method.__name__

    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        runner: AsyncRunner = self._runtime.runner
        result: T = await (runner.read if is_read else runner)(getattr(self, name), *args, **kwargs)
        return result

    call.__name__ = f"a{name}"
    call.__qualname__ = method.__qualname__.removesuffix(name) + f"a{name}"
    call.__doc__ = f"Run `{name}` in the memory's thread, without blocking the event loop. It takes the same arguments."
    return call


async def _wait(work: Future[T], *, withdraw: bool) -> T:
    """Wait for a call; if the waiting task is cancelled, let it go on, or withdraw it if it hasn't begun."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[T] = asyncio.wrap_future(work)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not (withdraw and work.cancel()):
            waiting.add_done_callback(lambda done: _report(done, loop))
        raise


def _report(done: "asyncio.Future[Any]", loop: asyncio.AbstractEventLoop) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        message = "a call of a memory failed after its caller was cancelled"
        loop.call_exception_handler({"message": message, "exception": error, "future": done})
