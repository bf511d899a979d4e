"""Outcomes of turns: how useful each one was where it was shown, as a running mean and variance.

Source: RAG++ (Diomande 2026), section 4.4; Welford (1962), and for merging Chan, Golub and LeVeque (1979).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from meve.errors import ValidationError, show

NEUTRAL = 0.5
"""The outcome that is expected of a turn that was never shown."""
_PRIOR_COUNT = 2.0
"""The number of neutral outcomes that stand beside the recorded ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeStatistics:
    """The count, mean and variance of outcomes in [0, 1], updated without a list of them.

    >>> statistics = OutcomeStatistics().add(1.0).add(0.0)
    >>> statistics.count, statistics.mean, statistics.variance
    (2, 0.5, 0.25)
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """The sum of the squared distances from the mean."""

    @property
    def variance(self) -> float:
        """The variance of the recorded outcomes; 0 for fewer than two."""
        return self.squares / self.count if self.count > 1 else 0.0

    @property
    def expected(self) -> float:
        """The outcome to expect next, in [0, 1]: the mean, drawn to 0.5 as if two such outcomes had been recorded."""
        return (self.count * self.mean + _PRIOR_COUNT * NEUTRAL) / (self.count + _PRIOR_COUNT)

    def add(self, outcome: float) -> Self:
        """Return the statistics with one more outcome.

        Args:
            outcome: 0 for useless, 1 for useful, or between.

        Raises:
            ValidationError: no number in [0, 1].
        """
        if isinstance(outcome, bool):
            outcome = float(outcome)
        if not isinstance(outcome, int | float) or not 0 <= outcome <= 1:
            raise ValidationError(f"outcome must be a number between 0 and 1, got {show(outcome, 40)}")
        return self.merge(type(self)(count=1, mean=float(outcome)))

    def merge(self, other: "OutcomeStatistics") -> Self:
        """Return the statistics of both series of outcomes together; the order of merges doesn't matter."""
        count = self.count + other.count
        if not count:
            return self
        delta = other.mean - self.mean
        return type(self)(
            count=count,
            mean=self.mean + delta * other.count / count,
            squares=self.squares + other.squares + delta * delta * self.count * other.count / count,
        )


NO_OUTCOMES = OutcomeStatistics()
"""The statistics before the first outcome."""


def merge_outcomes(
    known: Mapping[str, OutcomeStatistics], added: Mapping[str, OutcomeStatistics]
) -> dict[str, OutcomeStatistics]:
    """Return the statistics of turns in both mappings together.

    Raises:
        ValidationError: `added` is no mapping to statistics.
    """
    if not isinstance(added, Mapping) or not all(isinstance(each, OutcomeStatistics) for each in added.values()):
        raise ValidationError(f"outcomes must be a mapping of turn ids to OutcomeStatistics, got {added!r:.80}")
    return {**known, **{turn: known.get(turn, NO_OUTCOMES).merge(each) for turn, each in added.items()}}
