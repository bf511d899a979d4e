"""One way for sync and async calls: the work is a thread's, and what stores are asked natively is the event loop's."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

ENOUGH = 1_000_000
"""Threads that a pool may have: as many as there are calls."""
_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()


class _Caller:
    """Who waits for the work, on which loop, and what the work waits for there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._awaited: Future[Any] | None = None
        self._gone = False

    def awaited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Called in the work's thread.

        Raises:
            CancelledError: nobody waits any more.
        """
        if self._gone:
            coroutine.close()
            raise CancelledError("who asked has left")
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._awaited = future
        if self._gone:  # since
            future.cancel()
        return future.result()

    def leave(self) -> None:
        """Called on the loop: what is awaited is cancelled, and so is all that would be."""
        self._gone = True
        if self._awaited is not None:
            self._awaited.cancel()


_CALLER: ContextVar[_Caller | None] = ContextVar("llama_index_meve_caller", default=None)


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread that nothing else uses meanwhile, from which `ask` comes back to this loop.

    The work waits for the loop, so it must never wait for a thread: in a pool that is full of such work, what it waits
    for would find no room. Context variables are the caller's. With the caller, what the work awaits is cancelled too.
    """
    loop = asyncio.get_running_loop()
    caller = _Caller(loop)
    context = copy_context()
    context.run(_CALLER.set, caller)
    try:
        return await loop.run_in_executor(_threads(loop), lambda: context.run(work, *args, **kwargs))
    except asyncio.CancelledError:
        caller.leave()
        raise


def _threads(loop: asyncio.AbstractEventLoop) -> ThreadPoolExecutor:
    """A thread for each call under way, kept for the next: a loop's own, since a forked process has other loops."""
    made = _POOLS.get(loop)
    if made is None:
        made = _POOLS[loop] = ThreadPoolExecutor(ENOUGH, thread_name_prefix="meve")
    return made


def ask(blocking: Callable[P, T], native: Callable[P, Awaitable[T]] | None, *args: P.args, **kwargs: P.kwargs) -> T:
    """What somebody else's part answers: awaited on the loop that waits for the work, if it can be, or else here.

    Args:
        blocking: asks in this thread.
        native: asks on a loop; None where the part would only block it.
        args: for either.
        kwargs: for either.
    """
    caller = _CALLER.get()
    if caller is None or native is None:
        return blocking(*args, **kwargs)

    async def on_loop() -> T:
        _CALLER.set(None)  # what blocks the loop from within mustn't wait for it
        return await native(*args, **kwargs)

    return caller.awaited(on_loop())


def own(part: Any, name: str, of: type, says: str | None = None) -> Any:
    """A part's async method, if the part has one of its own; None where it is the inherited one, which blocks the loop.

    Args:
        part: a store, a retriever.
        name: of the method.
        of: the class that it may be inherited from.
        says: the method that a part overrides to have one of its own; None for the same.
    """
    told = says or name
    return getattr(part, name, None) if getattr(type(part), told, None) is not getattr(of, told) else None
