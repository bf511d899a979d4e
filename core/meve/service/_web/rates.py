"""Limits of how often somebody may ask."""

import threading
from collections.abc import Callable


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
