"""The clock of a memory: it never goes back, so that a clock set back revives no record and prolongs none."""

from contextlib import suppress
from datetime import datetime
from typing import Protocol, runtime_checkable

from meve._fork_safety import ForkSafeLock
from meve.clock import Clock
from meve.errors import StorageError, StoreCorruptError, wrap_errors
from meve.memory._timestamps import from_micros, to_micros

NOTE_EVERY = 60_000_000
"""The least difference between two times that are noted, in microseconds: a minute."""


@runtime_checkable
class SharedTime(Protocol):
    """Keeps the latest time that a process saw, for other processes and later ones; in microseconds since 1970."""

    def latest_time(self) -> int:
        """Return the time that was noted last; 0 if none was."""
        ...

    def note_time(self, moment: int) -> None:
        """Note a time."""
        ...


class SteadyClock:
    """Returns the latest time that the given clock showed, or that the file has seen. Thread-safe.

    Args:
        clock: the clock to read.
        shared: where each time is noted that is a minute later than the one noted before; None for nowhere.
    """

    def __init__(self, clock: Clock, shared: SharedTime | None = None) -> None:
        self.inner = clock
        """The clock that is read."""
        self._shared = shared
        self._latest: datetime | None = None
        self._lock = ForkSafeLock()
        self.elapsed = clock.elapsed

    def now(self) -> datetime:
        """Return the current time, or the latest one seen if that is later."""
        return self._share(self.observe(self.inner.now()), NOTE_EVERY)

    def observe(self, moment: datetime) -> datetime:
        """Note a moment that another process saw, and return the latest one."""
        with self._lock:
            if self._latest is None or moment > self._latest:
                self._latest = moment
            return self._latest

    def stop(self) -> None:
        """Note the latest time that was seen, and share none from now on."""
        if self._latest is not None:
            with suppress(StorageError):  # the file may be gone; a minute is lost at most
                self._share(self._latest, 1)
        self._shared = None

    def _share(self, moment: datetime, step: int) -> datetime:
        shared = self._shared
        if shared is None:
            return moment
        noted, micros = shared.latest_time(), to_micros(moment)
        if micros >= noted + step:
            shared.note_time(micros)
        if noted <= micros:
            return moment
        with wrap_errors(StoreCorruptError, "reading the latest time that the memory has seen"):
            return self.observe(from_micros(noted))
