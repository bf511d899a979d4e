"""How sure is a mean, and is one system better than another? By the bootstrap: questions drawn again, with replacement.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 13 and 14 (percentile intervals).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

CONFIDENCE = 0.95
RESAMPLES = 1_000
_Z = 1.959964
"""Of the normal distribution, 95 % lie as many standard deviations around its mean."""
FEWEST = 10
"""With fewer questions, no difference counts as more than chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int
    """Questions that it was computed from."""

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it lies above zero, or below; never with fewer than ten questions, which tell too little."""
        return self.n >= FEWEST and (self.low > 0 or self.high < 0)


def mean_interval(values: Sequence[float], *, seed: int) -> Interval:
    """The mean of one value a question; the same values and seed give the same interval.

    Args:
        values: n of them, at least one.
        seed: of the draws.
    """
    data = np.asarray(values, dtype=np.float64)
    means = data[_draws(len(data), seed)].mean(axis=1)
    return _between(float(data.mean()), means, len(data))


def share_interval(successes: int, n: int) -> Interval:
    """The share of n cases in which something was so; an interval that has a width also where all or none were.

    Args:
        successes: in how many, from 0 to n.
        n: of how many, at least one.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.

    >>> share_interval(0, 100).high < 0.04
    True
    """
    share, z2 = successes / n, _Z**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * (share * (1 - share) / n + z2 / (4 * n * n)) ** 0.5 / (1 + z2 / n)
    return Interval(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), n=n)


def paired_difference(old: Sequence[float], new: Sequence[float], *, seed: int) -> Interval:
    """The mean of new - old over the same questions, in the same order.

    Raises:
        ValueError: another number of the one than of the other.
    """
    return mean_interval([n - o for o, n in zip(old, new, strict=True)], seed=seed)


def interval(n: int, statistic: Callable[[Indices], float | None], *, seed: int) -> Interval | None:
    """A statistic of n questions together; None where it isn't known even from all of them.

    Args:
        n: how many questions there are, at least one.
        statistic: computed from the numbers of the questions drawn; a draw that doesn't allow it (None) is left out.
        seed: of the draws.
    """
    value = statistic(np.arange(n))
    if value is None:
        return None
    found = [drawn for indices in _draws(n, seed) if (drawn := statistic(indices)) is not None]
    return _between(value, np.asarray(found), n)


def paired_statistic(
    n: int, old: Callable[[Indices], float | None], new: Callable[[Indices], float | None], *, seed: int
) -> Interval | None:
    """The difference new - old of a statistic of n questions together, both over the same draws."""

    def difference(drawn: Indices) -> float | None:
        before, now = old(drawn), new(drawn)
        return None if before is None or now is None else now - before

    return interval(n, difference, seed=seed)


def _draws(n: int, seed: int) -> Indices:
    return np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))


def _between(value: float, drawn: npt.NDArray[np.float64], n: int) -> Interval:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail]).tolist()
    return Interval(value=value, low=low, high=high, n=n)
