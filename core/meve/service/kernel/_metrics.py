"""Counters of a kernel, in the text format of Prometheus. No tenant, conversation or turn is named."""

import threading
from collections import Counter

_EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counts requests, slices and turns. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._slices: Counter[bool] = Counter()
        self._buckets = [0] * (len(_EDGES) + 1)
        self._seconds, self._turns = 0.0, 0

    def count_request(self, path: str, status: int) -> None:
        """Count an answered request."""
        with self._lock:
            self._requests[path, status] += 1

    def count_slice(self, seconds: float, *, is_cached: bool) -> None:
        """Count a slice and the time that it took."""
        bucket = next((n for n, edge in enumerate(_EDGES) if seconds <= edge), len(_EDGES))
        with self._lock:
            self._slices[is_cached] += 1
            self._buckets[bucket] += 1
            self._seconds += seconds

    def count_turns(self, added: int) -> None:
        """Count new turns."""
        with self._lock:
            self._turns += added

    def to_text(self) -> str:
        """Return all counters."""
        with self._lock:
            lines = ["# TYPE meve_kernel_requests_total counter"]
            lines += [
                f'meve_kernel_requests_total{{path="{path}",status="{status}"}} {count}'
                for (path, status), count in sorted(self._requests.items())
            ]
            lines.append("# TYPE meve_kernel_slices_total counter")
            lines += [
                f'meve_kernel_slices_total{{cached="{str(cached).lower()}"}} {self._slices[cached]}'
                for cached in (False, True)
            ]
            lines += ["# TYPE meve_kernel_turns_added_total counter", f"meve_kernel_turns_added_total {self._turns}"]
            lines.append("# TYPE meve_kernel_slice_seconds histogram")
            total = 0
            for edge, count in zip((*map(str, _EDGES), "+Inf"), self._buckets, strict=True):
                total += count
                lines.append(f'meve_kernel_slice_seconds_bucket{{le="{edge}"}} {total}')
            lines.append(f"meve_kernel_slice_seconds_sum {self._seconds:.6f}")
            lines.append(f"meve_kernel_slice_seconds_count {total}")
        return "\n".join(lines) + "\n"
