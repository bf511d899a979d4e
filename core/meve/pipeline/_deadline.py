"""Keep verification to a deadline."""

from collections.abc import Sequence
from itertools import accumulate

from meve.clock import Clock
from meve.types import Candidate

BATCH = 8
"""The most candidates to score before the next ones are chosen; a long one counts as several."""
FIRST_BATCH = 4
"""The number of candidates to score whatever the time; their time tells how many the next batch can hold."""
ASSUMED = 0.1
"""The seconds of a reading, assumed while all scores so far came from a cache."""
READING, MOST_READINGS = 1_200, 16
"""The characters that a verifier reads at once, about, and the most parts of a passage that it reads."""
DEADLINE = "deadline"
"""The reason of a candidate that wasn't scored, and of a phase that didn't run, for lack of time."""


class Deadline:
    """The end of a retrieval's time; chooses batch sizes by the candidates' lengths and the last batch's time.

    The time begins when the object is made. Not thread-safe: each retrieval has its own.

    Args:
        clock: measures the time.
        seconds: the time of the retrieval; above 0.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.elapsed() + seconds
        self._seconds_each = ASSUMED
        """The seconds that a reading took."""
        self._batch_start = 0.0
        self._readings: float | None = None
        """The readings of the last batch that began, without cached scores; None before the first."""

    def start_batch(self, candidates: Sequence[Candidate], known: Sequence[bool] | None = None) -> int:
        """Return how many of the candidates to score next, and begin to time them; 0 if there is no time for one.

        Candidates with known scores take no time. The first batch doesn't depend on the time; it holds four readings,
        or one long candidate.

        Args:
            candidates: those without a score, in their order.
            known: for each, whether its score is cached; None if none is.
        """
        self._batch_start = self._clock.elapsed()
        known = known or [False] * len(candidates)
        costs = [0.0 if has_score else _count_readings(c) for c, has_score in zip(candidates, known, strict=True)]
        readings = list(accumulate(costs))
        if self._readings is None:
            size = max(sum(total <= FIRST_BATCH for total in readings), 1)
        else:
            left = self._end - self._batch_start
            affordable = sum(total * self._seconds_each <= left for total in readings) if left > 0 else 0
            size = min(affordable, max(sum(total <= BATCH for total in readings), 1))
        self._readings = sum(costs[:size])
        return size

    def end_batch(self) -> None:
        """Record that the batch has been scored."""
        if self._readings:
            self._seconds_each = (self._clock.elapsed() - self._batch_start) / self._readings

    def has_time_for(self, candidates: int) -> bool:
        """Return whether that many short candidates can be scored in time, at the pace of the last batch."""
        left = self._end - self._clock.elapsed()
        return left > 0 and candidates * self._seconds_each <= left


def _count_readings(candidate: Candidate) -> float:
    """Return about how many parts of the passage a verifier reads, at least 1."""
    return min(max(len(candidate.passage.content) / READING, 1.0), MOST_READINGS)
