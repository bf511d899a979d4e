"""Batch the writes of concurrent tasks into one transaction."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from meve.memory._async_runner import AsyncRunner

Job = TypeVar("Job")


@dataclass(slots=True, eq=False)
class _Entry(Generic[Job]):
    job: Job
    is_done: bool = False
    failure: Exception | None = None


class WriteBatcher(Generic[Job]):
    """Collects jobs while a batch runs in the memory's thread, then runs them as the next batch.

    A job that fails fails alone. A job is run even if its caller is cancelled.

    Args:
        runner: runs calls in the memory's thread, one after the other.
        run_batch: runs several jobs; returns each one's exception or None, in the same order.
    """

    def __init__(self, runner: AsyncRunner, run_batch: Callable[[Sequence[Job]], Sequence[Exception | None]]) -> None:
        self._runner = runner
        self._run_batch = run_batch
        self._waiting: list[_Entry[Job]] = []
        self._guard = threading.Lock()

    async def submit(self, job: Job) -> None:
        """Run a job in the next batch and wait for it; raise the exception that it failed with."""
        entry = _Entry(job)
        with self._guard:
            self._waiting.append(entry)
        try:
            await self._runner(self._finish, entry)
        except Exception:
            with self._guard:  # no thread could be started: the caller gets the error, and no later call writes it
                self._waiting = [each for each in self._waiting if each is not entry]
            raise

    def _finish(self, entry: _Entry[Job]) -> None:
        """Run all jobs that wait, unless an earlier call has run this one with others."""
        if not entry.is_done:
            with self._guard:
                batch, self._waiting = self._waiting, []
            for each, failure in zip(batch, self._run_batch([each.job for each in batch]), strict=True):
                each.failure, each.is_done = failure, True
        if entry.failure is not None:
            raise entry.failure
