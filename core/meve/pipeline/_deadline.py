"""Keep verification to a deadline."""

from meve.clock import Clock

BATCH = 8
"""The most candidates to score before the next ones are chosen."""
FIRST_BATCH = 4
"""The number of candidates to score whatever the time; their time tells how many the next batch can hold."""
DEADLINE = "deadline"
"""The reason of a candidate that wasn't scored, and of a phase that didn't run, for lack of time."""


class Deadline:
    """The end of a retrieval's time; chooses batch sizes by the time that the last batch took.

    The time begins when the object is made. Not thread-safe: each retrieval has its own.

    Args:
        clock: measures the time.
        seconds: the time of the retrieval; above 0.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.elapsed() + seconds
        self._seconds_each: float | None = None
        self._batch_start = 0.0

    def start_batch(self) -> int:
        """Return how many candidates to score next, and begin to time them; 0 if the time doesn't suffice for one.

        The first batch doesn't depend on the time.
        """
        self._batch_start = self._clock.elapsed()
        return FIRST_BATCH if self._seconds_each is None else self._count_affordable(self._end - self._batch_start)

    def end_batch(self, scored: int) -> None:
        """Record that a batch of that many candidates, at least 1, has been scored."""
        self._seconds_each = (self._clock.elapsed() - self._batch_start) / scored

    def has_time_for(self, candidates: int) -> bool:
        """Return whether that many candidates can be scored in time, if each takes as long as one of the last batch."""
        left = self._end - self._clock.elapsed()
        return left > 0 and candidates * (self._seconds_each or 0.0) <= left

    def _count_affordable(self, left: float) -> int:
        each = self._seconds_each or 0.0
        if left <= 0:
            return 0
        return BATCH if BATCH * each <= left else int(left / each)
