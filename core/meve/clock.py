"""Provide the time, replaceable in tests."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""

    def elapsed(self) -> float:
        """Return the seconds since some fixed moment; never decreases."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Return the seconds of the monotonic performance counter."""
        return time.perf_counter()
