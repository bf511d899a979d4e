"""Writes of many tasks on one event loop, made together: one transaction, and one wait for the disk."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Mailbox(Generic[Job]):
    """Takes jobs while others are being done, and does what has come by then at once, in a thread.

    A job that can't be done fails alone. Of one whose caller gave up before its turn nothing is done.

    Args:
        do: does several jobs; tells of each, in this order, what it failed with, or None.
    """

    def __init__(self, do: Callable[[Sequence[Job]], Sequence[Exception | None]]) -> None:
        self._do = do
        self._waiting: list[tuple[Job, asyncio.Future[None]]] = []
        self._carrier: asyncio.Task[None] | None = None

    async def send(self, job: Job) -> None:
        """Have a job done; returns when it is, or raises what it failed with."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, done))
        if self._carrier is None:
            self._carrier = asyncio.create_task(self._carry())
        await done

    async def _carry(self) -> None:
        try:
            while self._waiting:
                taken = [(job, done) for job, done in self._waiting if not done.done()]
                self._waiting.clear()
                await self._carry_one(taken)
        finally:
            self._carrier = None

    async def _carry_one(self, taken: Sequence[tuple[Job, "asyncio.Future[None]"]]) -> None:
        try:
            failures = await asyncio.to_thread(self._do, [job for job, _ in taken])
        except Exception as none_done:  # such as no thread to be had: whoever waits is told, and the next may be sent
            failures = [none_done] * len(taken)
        except BaseException:
            for _, done in taken:
                done.cancel()
            raise
        for (_, done), failure in zip(taken, failures, strict=True):
            if done.done():
                continue
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)


class Mailboxes(Generic[Job]):
    """One for each event loop that asks.

    Args:
        do: as for a `Mailbox`.
    """

    def __init__(self, do: Callable[[Sequence[Job]], Sequence[Exception | None]]) -> None:
        self._do = do
        self._mine: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox[Job]] = weakref.WeakKeyDictionary()
        self._guard = threading.Lock()

    def here(self) -> Mailbox[Job]:
        """That of the running loop."""
        with self._guard:
            return self._mine.setdefault(asyncio.get_running_loop(), Mailbox(self._do))
