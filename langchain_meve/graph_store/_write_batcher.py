"""Batch the writes of concurrent tasks on one event loop into one transaction."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Job = TypeVar("Job")


class WriteBatcher(Generic[Job]):
    """Collects jobs while a batch runs in a thread, then runs them as the next batch.

    A job that fails fails alone. A job whose caller was cancelled before its batch began is skipped.

    Args:
        run_batch: runs several jobs; returns each one's exception or None, in the same order.
    """

    def __init__(self, run_batch: Callable[[Sequence[Job]], Sequence[Exception | None]]) -> None:
        self._run_batch = run_batch
        self._waiting: list[tuple[Job, asyncio.Future[None]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def submit(self, job: Job) -> None:
        """Run a job in the next batch and wait for it; raise the exception that it failed with."""
        completion: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, completion))
        if self._worker is None:
            self._worker = asyncio.create_task(self._drain())
        await completion

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch = [(job, completion) for job, completion in self._waiting if not completion.done()]
                self._waiting.clear()
                await self._run(batch)
        finally:
            self._worker = None

    async def _run(self, batch: Sequence[tuple[Job, "asyncio.Future[None]"]]) -> None:
        try:
            failures = await asyncio.to_thread(self._run_batch, [job for job, _ in batch])
        except Exception as error:  # e.g. no thread can be started: every caller gets it, later jobs may succeed
            failures = [error] * len(batch)
        except BaseException:
            for _, completion in batch:
                completion.cancel()
            raise
        for (_, completion), failure in zip(batch, failures, strict=True):
            if completion.done():
                continue
            if failure is None:
                completion.set_result(None)
            else:
                completion.set_exception(failure)


class WriteBatchers(Generic[Job]):
    """One `WriteBatcher` for each event loop."""

    def __init__(self, run_batch: Callable[[Sequence[Job]], Sequence[Exception | None]]) -> None:
        self._run_batch = run_batch
        self._batchers = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, WriteBatcher[Job]]()
        self._guard = threading.Lock()

    def current(self) -> WriteBatcher[Job]:
        with self._guard:
            return self._batchers.setdefault(asyncio.get_running_loop(), WriteBatcher(self._run_batch))
