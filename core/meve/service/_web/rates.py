"""Limits of requests, and how often somebody may ask."""

import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from meve.errors import ConfigurationError


def check_limits(limits: Any) -> None:  # noqa: ANN401 - any dataclass
    """Check that each field is a whole number of at least 1.

    Raises:
        ConfigurationError: one isn't.
    """
    for field in fields(limits):
        value = getattr(limits, field.name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigurationError(f"{field.name} must be a whole number of at least 1, got {value!r:.40}")


class RateLimiter:
    """Counts the requests of each name; each gets `rate` per second, and up to `burst` at once."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, name: str) -> float:
        """Count a request, and return 0; or return the seconds to wait if the name has none left."""
        with self._lock:
            now = self._now()
            left, since = self._left.get(name, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            wait = 0.0 if left >= 1 else (1 - left) / self._rate
            self._left[name] = (left if wait else left - 1, now)
            return wait
