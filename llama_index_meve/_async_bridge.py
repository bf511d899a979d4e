"""Run blocking work for async callers in a thread, and await a store's own async methods on the caller's event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()


class _Caller:
    """The event loop that waits for the work, and what the work awaits on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: Future[Any] | None = None
        self._cancelled = False

    def await_on_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the caller's loop and wait for its result, from the worker thread."""
        if self._cancelled:
            coroutine.close()
            raise CancelledError("the caller was cancelled")
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._future = future
        if self._cancelled:  # meanwhile, in the loop's thread
            future.cancel()
        return future.result()

    def cancel(self) -> None:
        """Cancel the pending coroutine and refuse later ones. Called on the loop."""
        self._cancelled = True
        if self._future is not None:
            self._future.cancel()


_CALLER: ContextVar[_Caller | None] = ContextVar("llama_index_meve_caller", default=None)


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread of its own, from which `await_or_call` can await on this event loop.

    The work sees the caller's context variables. Cancelling the caller cancels what the work awaits.
    """
    loop = asyncio.get_running_loop()
    caller = _Caller(loop)
    context = copy_context()
    context.run(_CALLER.set, caller)
    try:
        return await loop.run_in_executor(_thread_pool(loop), lambda: context.run(work, *args, **kwargs))
    except asyncio.CancelledError:
        caller.cancel()
        raise


def _thread_pool(loop: asyncio.AbstractEventLoop) -> ThreadPoolExecutor:
    # The work blocks its thread while it waits for the loop: a bounded pool could deadlock. One pool per loop, since a
    # forked process has other loops.
    if loop not in _POOLS:
        _POOLS[loop] = ThreadPoolExecutor(max_workers=1_000_000, thread_name_prefix="meve")
    return _POOLS[loop]


def await_or_call(
    blocking: Callable[P, T], native: Callable[P, Awaitable[T]] | None, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Await the native async method on the waiting event loop; without one, call the blocking method here."""
    caller = _CALLER.get()
    if caller is None or native is None:
        return blocking(*args, **kwargs)

    async def on_loop() -> T:
        _CALLER.set(None)  # code that blocks the loop itself mustn't wait for it
        return await native(*args, **kwargs)

    return caller.await_on_loop(on_loop())


def native_method(component: Any, name: str, base: type, overridden: str | None = None) -> Any:
    """Return a component's async method, or None if it inherits the one of `base`, which only blocks the loop.

    Native implementations override the method `overridden`, if that isn't `name` itself.
    """
    overridden = overridden or name
    is_inherited = getattr(type(component), overridden, None) is getattr(base, overridden)
    return None if is_inherited else getattr(component, name, None)
