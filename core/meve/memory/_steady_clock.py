"""The clock of a memory: it never goes back, so that a clock set back revives no record and prolongs none."""

from datetime import datetime

from meve._fork_safety import ForkSafeLock
from meve.clock import Clock


class SteadyClock:
    """Returns the latest time that the given clock showed, or that the file has seen. Thread-safe.

    Args:
        clock: the clock to read.
    """

    def __init__(self, clock: Clock) -> None:
        self.inner = clock
        """The clock that is read."""
        self._latest: datetime | None = None
        self._lock = ForkSafeLock()
        self.elapsed = clock.elapsed

    def now(self) -> datetime:
        """Return the current time, or the latest one seen if that is later."""
        return self.observe(self.inner.now())

    def observe(self, moment: datetime) -> datetime:
        """Note a moment that another process saw, and return the latest one."""
        with self._lock:
            if self._latest is None or moment > self._latest:
                self._latest = moment
            return self._latest
