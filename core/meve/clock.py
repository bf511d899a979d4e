"""Time comes in through here, so that tests can set it."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def elapsed(self) -> float:
        """Seconds from some fixed moment on; never goes back."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Seconds of the monotonic performance counter."""
        return time.perf_counter()
