"""Sums of scores as relevances below 1, and the selection of the best."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_KNEE = 0.8
"""Sums of scores above this are compressed below 1; a plain minimum would make the best memories equal."""
_ROUNDING = 1e-5
"""A difference of small sums that may be lost when relevances are limited and rounded; grows with the sum squared."""


def limit_relevance(sums: Floats) -> Floats:
    """Return sums of scores, at least 0, as relevances below 1, in the same order; those up to the knee stay.

    >>> limit_relevance(np.array([0.5, 0.8, 1.0, 3.0])).round(3).tolist()
    [0.5, 0.8, 0.9, 0.983]
    """
    room = 1 - _KNEE
    return np.where(sums <= _KNEE, sums, 1 - room * room / (np.maximum(sums, _KNEE) - _KNEE + room))


def select_best(sums: Floats, k: int) -> npt.NDArray[np.int64]:
    """Return the positions of the k highest sums, and of those that may be equal to them once they are limited.

    Sums below 0 are left out.

    >>> select_best(np.array([0.5, -1.0, 0.7, 0.5, 0.2]), 2).tolist()
    [0, 2, 3]
    """
    least = 0.0
    if len(sums) > k:
        last = max(float(np.partition(sums, len(sums) - k)[len(sums) - k]), 0.0)
        least = max(last - _ROUNDING * (1 + last) ** 2, 0.0)
    return np.flatnonzero(sums >= least)
