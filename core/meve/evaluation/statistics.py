"""Confidence intervals of means, shares and differences, by bootstrapping questions.

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
"""The number of standard deviations around a normal distribution's mean that contain 95 % of it."""
MIN_QUESTIONS = 10
"""The number of questions below which no difference counts as more than chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int
    """The number of questions behind the value."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies above zero or below it; never with fewer than `MIN_QUESTIONS` questions."""
        return self.n >= MIN_QUESTIONS and (self.low > 0 or self.high < 0)


def mean_interval(values: Sequence[float], *, seed: int) -> Interval:
    """Return the mean of one value per question; the same values and seed give the same interval.

    Args:
        values: one per question, at least one.
        seed: seed of the bootstrap.
    """
    data = np.asarray(values, dtype=np.float64)
    means = data[_draw_indices(len(data), seed)].mean(axis=1)
    return _percentile_interval(float(data.mean()), means, len(data))


def clustered_interval(values: Sequence[float], clusters: Sequence[str], *, seed: int) -> Interval:
    """Return the mean of one value per question; whole clusters are drawn, since their questions aren't independent.

    Args:
        values: one per question, at least one.
        clusters: the cluster of each question, such as its conversation.
        seed: seed of the bootstrap.

    Raises:
        ValueError: `values` and `clusters` differ in length.
    """
    groups: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    sums, counts = (np.array([measure(group) for group in groups.values()]) for measure in (sum, len))
    drawn = _draw_indices(len(groups), seed)
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return _percentile_interval(float(sums.sum() / counts.sum()), means, len(values))


def percentile_interval(values: Sequence[float], percent: float, *, seed: int) -> Interval:
    """Return a percentile of the values.

    Args:
        values: at least one.
        percent: from 0 to 100.
        seed: seed of the bootstrap.
    """
    data = np.asarray(values, dtype=np.float64)
    percentiles = np.percentile(data[_draw_indices(len(data), seed)], percent, axis=1)
    return _percentile_interval(float(np.percentile(data, percent)), percentiles, len(data))


def share_interval(successes: int, n: int) -> Interval:
    """Return a share of n cases, with Wilson's interval, which has a width also at 0 and 1.

    Args:
        successes: from 0 to n.
        n: at least 1.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.

    >>> share_interval(0, 100).high < 0.04
    True
    """
    share, z2 = successes / n, _Z**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * (share * (1 - share) / n + z2 / (4 * n * n)) ** 0.5 / (1 + z2 / n)
    return Interval(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), n=n)


def paired_difference(old: Sequence[float], new: Sequence[float], *, seed: int) -> Interval:
    """Return the mean of new - old over the same questions, in the same order.

    Raises:
        ValueError: `old` and `new` differ in length.
    """
    return mean_interval([n - o for o, n in zip(old, new, strict=True)], seed=seed)


def bootstrap_interval(n: int, statistic: Callable[[Indices], float | None], *, seed: int) -> Interval | None:
    """Return a statistic of n questions together; None if all of them together don't have it.

    Args:
        n: the number of questions, at least one.
        statistic: from the indices of the questions drawn; draws for which it returns None are left out.
        seed: seed of the bootstrap.
    """
    value = statistic(np.arange(n))
    if value is None:
        return None
    values = [drawn for indices in _draw_indices(n, seed) if (drawn := statistic(indices)) is not None]
    return _percentile_interval(value, np.asarray(values), n)


def paired_interval(
    n: int, old: Callable[[Indices], float | None], new: Callable[[Indices], float | None], *, seed: int
) -> Interval | None:
    """Return the difference new - old of a statistic of n questions together, both over the same draws."""

    def difference(drawn: Indices) -> float | None:
        before, now = old(drawn), new(drawn)
        return None if before is None or now is None else now - before

    return bootstrap_interval(n, difference, seed=seed)


def _draw_indices(n: int, seed: int) -> Indices:
    return np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))


def _percentile_interval(value: float, drawn: npt.NDArray[np.float64], n: int) -> Interval:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail]).tolist()
    return Interval(value=value, low=low, high=high, n=n)
