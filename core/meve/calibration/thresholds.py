"""Chooses the threshold that reaches a given precision or recall on labelled pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from meve.errors import CalibrationError

ScoresLike: TypeAlias = Sequence[float] | npt.NDArray[np.floating]
"""Shape (n,)."""

LabelsLike: TypeAlias = Sequence[bool] | npt.NDArray[np.bool_]
"""Shape (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdChoice:
    """A threshold on probabilities, with its precision and recall on the pairs it was chosen on."""

    threshold: float
    """Passages with at least this probability are kept; in [0, 1]."""
    precision: float
    """The share of kept pairs that are relevant, in [0, 1]."""
    recall: float
    """The share of relevant pairs that are kept, in [0, 1]."""


def choose_threshold(
    probabilities: ScoresLike,
    relevant: LabelsLike,
    *,
    precision: float | None = None,
    recall: float | None = None,
) -> ThresholdChoice:
    """Return the threshold with the best F1 among those that reach the targets.

    Args:
        probabilities: of pairs, shape (n,), in [0, 1].
        relevant: whether each pair is relevant, shape (n,).
        precision: the minimum share of kept pairs that are relevant, in (0, 1]; None for any.
        recall: the minimum share of relevant pairs that are kept, in (0, 1]; None for any.

    Raises:
        CalibrationError: no pairs, one label only, NaN, lengths that differ, or an unreachable target; the message
            names the best reachable value.
    """
    p, y = check_scores(probabilities, relevant)
    if p.min() < 0 or p.max() > 1:
        raise CalibrationError(f"probabilities must be in [0, 1], got {p.min():.4g} to {p.max():.4g}: calibrate first")
    for name, target in (("precision", precision), ("recall", recall)):
        if target is not None and not (isinstance(target, Real) and 0 < target <= 1):
            raise CalibrationError(f"{name} must be above 0 and at most 1, got {target!r}")
    thresholds, kept = np.unique(-p, return_counts=True)
    kept = np.cumsum(kept)
    hits = np.cumsum(y[np.argsort(-p, kind="stable")])[kept - 1]
    precisions, recalls = hits / kept, hits / y.sum()
    good = (precisions >= (precision or 0.0)) & (recalls >= (recall or 0.0))
    if not good.any():
        raise CalibrationError(_unreachable(precisions, recalls, precision, recall))
    f1 = 2 * hits / (kept + y.sum())
    best = int(np.argmax(np.where(good, f1, -1.0)))
    return ThresholdChoice(
        threshold=float(-thresholds[best]), precision=float(precisions[best]), recall=float(recalls[best])
    )


def choose_balanced_threshold(probabilities: ScoresLike, relevant: LabelsLike) -> float:
    """Return the threshold with the highest balanced accuracy, halfway between two probabilities.

    Balanced accuracy is the mean of the shares of both labels that are classified correctly.

    Args:
        probabilities: shape (n,), in [0, 1].
        relevant: shape (n,).

    Raises:
        CalibrationError: no pairs, one label only, NaN, or lengths that differ.

    >>> choose_balanced_threshold([0.1, 0.2, 0.6, 0.8], [False, False, True, True])
    0.4
    """
    p, y = check_scores(probabilities, relevant)
    order = np.argsort(p, kind="stable")
    p, y = p[order], y[order]
    below = np.concatenate([[0], np.cumsum(~y)]) / (~y).sum()  # of the first n, correctly rejected
    above = 1 - np.concatenate([[0], np.cumsum(y)]) / y.sum()
    edges = np.concatenate([[0.0], (p[1:] + p[:-1]) / 2, [1.0]])
    cuts = np.concatenate([[True], p[1:] > p[:-1], [True]])  # no threshold separates equal probabilities
    return float(edges[int(np.argmax(np.where(cuts, below + above, -1.0)))])


def area_under_curve(raw: ScoresLike, relevant: LabelsLike) -> float:
    """Return the probability that a relevant pair outscores another one, ties counted half; in [0, 1], 0.5 is chance.

    Raises:
        CalibrationError: no pairs, one label only, NaN, or lengths that differ.

    Source: Mann and Whitney (1947).

    >>> area_under_curve([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    x, y = check_scores(raw, relevant)
    _, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[where]
    positives = int(y.sum())
    return float((ranks[y].sum() - positives * (positives + 1) / 2) / (positives * (y.size - positives)))


def check_scores(values: ScoresLike, relevant: LabelsLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return scores and labels as arrays (n,), after checking them.

    Raises:
        CalibrationError: no pairs, one label only, NaN, or lengths that differ.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(relevant)
    if x.ndim != 1 or x.shape != y.shape:
        raise CalibrationError(f"scores of shape {x.shape} and labels of shape {y.shape} don't match: give one each")
    if not np.isfinite(x).all():
        raise CalibrationError(f"{int((~np.isfinite(x)).sum())} of {x.size} scores are NaN or infinite: leave them out")
    if not np.isin(y, (0, 1)).all():
        raise CalibrationError(f"labels must be True or False, got {y[~np.isin(y, (0, 1))][0]!r}")
    y = y.astype(np.bool_)
    if y.all() or not y.any():
        only = "no pairs" if not y.size else f"{y.size} pairs, all {'relevant' if y.all() else 'not relevant'}"
        raise CalibrationError(f"relevant and irrelevant pairs are needed, got {only}")
    return x, y


def _unreachable(
    precisions: npt.NDArray[np.float64], recalls: npt.NDArray[np.float64], precision: float | None, recall: float | None
) -> str:
    wanted = " with ".join(f"{n} {t}" for n, t in (("precision", precision), ("recall", recall)) if t is not None)
    if recall is not None:
        rows = recalls >= recall
        best = f"at recall {recall} the best precision is {precisions[rows].max():.4f}"
    else:
        best = f"the best precision is {precisions.max():.4f}"
    return f"no threshold reaches {wanted} on these pairs: {best}; lower the target, or use a stronger verifier"
