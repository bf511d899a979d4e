"""Turns labelled pairs into a calibration and a threshold, and says how good they are."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Literal

import numpy as np
import numpy.typing as npt

from meve._formulas import expected_calibration_error
from meve.calibration.maps import AnyCalibration, IsotonicCalibration, PlattCalibration
from meve.calibration.thresholds import (
    Labels,
    Scores,
    ThresholdChoice,
    area_under_curve,
    choose_threshold,
    score_arrays,
)
from meve.errors import CalibrationError, missing_extra
from meve.ports import Calibration, Verifier
from meve.types import FloatArray, LabelledPair

__all__ = [
    "CalibrationReport",
    "Method",
    "ThresholdChoice",
    "area_under_curve",
    "calibrate",
    "choose_threshold",
    "fit_calibration",
    "raw_scores",
]

Method = Literal["platt", "isotonic"]

LEAST_PAIRS = {"platt": 20, "isotonic": 100}
"""Fewer pairs than this would be fitted to their noise."""
LEAST_OF_A_LABEL = 5
HELD_OUT = 0.3
"""The share of pairs that a first fit doesn't see, so that its error can be stated."""

_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """What `calibrate` found: give `calibration` to `verifier.with_calibration`, `threshold` to the configuration."""

    calibration: AnyCalibration
    threshold: float
    precision: float
    """At that threshold, on these pairs."""
    recall: float
    """At that threshold, on these pairs."""
    error_before: float
    """Expected calibration error, in [0, 1], of the calibration that the verifier had, on pairs kept out of the fit."""
    error_after: float
    """The same of the new one, on the same pairs."""
    auc: float
    """How often a relevant pair outscores another one, in [0, 1]; 0.5 is chance. No calibration changes it."""
    pairs: int


def fit_calibration(
    raw: Scores,
    relevant: Labels,
    *,
    method: Method = "platt",
    fitted_on: str = "",
    seed: int = 0,
) -> AnyCalibration:
    """Fit raw scores to labels: first on a part, to state the error on the rest; then on all.

    Args:
        raw: a model's raw scores, shape (n,).
        relevant: whether each pair is relevant, shape (n,).
        method: `platt`, two numbers; or `isotonic`, free in shape, which wants a thousand pairs or more.
        fitted_on: where the pairs came from, to be saved with the calibration.
        seed: of the split.

    Raises:
        CalibrationError: too few pairs, one label only, NaN, lengths that differ, or scores that
            don't rise with relevance.
        MissingExtraError: scikit-learn isn't installed.

    Source: Platt (1999), with his smoothed targets; Zadrozny and Elkan (2002).
    """
    x, y = _checked(raw, relevant, method)
    held = _held_out(y, seed)
    trial = _fit(x[~held], y[~held], method)
    error = expected_calibration_error(trial.apply(np.asarray(x[held], dtype=np.float32)), y[held])
    return replace(_fit(x, y, method), fitted_on=fitted_on, pairs=int(x.size), error=error)


def calibrate(
    verifier: Verifier,
    pairs: Sequence[LabelledPair],
    *,
    method: Method = "platt",
    precision: float | None = None,
    recall: float | None = None,
    fitted_on: str = "",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationReport:
    """Score labelled pairs, fit a calibration to them, and choose a threshold. The verifier itself isn't changed.

    Args:
        verifier: gives the raw scores.
        pairs: queries with passages that answer them and passages that don't, in the proportion that a retrieval
            brings them in: a calibration learns that proportion too.
        method: `platt` or `isotonic`.
        precision: see `choose_threshold`.
        recall: see `choose_threshold`.
        fitted_on: where the pairs came from, to be saved with the calibration.
        seed: of the split that the errors are measured on.
        progress: told after each query how many pairs are done, and of how many.

    Raises:
        CalibrationError: too few pairs, one label only, or a target out of reach.
        MissingExtraError: scikit-learn isn't installed.
        QueryError: a query longer than the verifier's window.
        ModelError: the verifier failed.
    """
    pairs = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    strange = [pair for pair in pairs if not isinstance(pair, LabelledPair)]
    if strange:
        wanted = "LabelledPair(query=…, passage=…, relevant=…)"
        raise CalibrationError(f"{strange[0]!r:.80} is no labelled pair: give {wanted}")
    y = np.asarray([pair.relevant for pair in pairs], dtype=np.bool_)
    _checked(np.zeros(len(pairs)), y, method)  # before the costly part
    raw = raw_scores(verifier, pairs, progress)
    calibration = fit_calibration(raw, y, method=method, fitted_on=fitted_on, seed=seed)
    choice = choose_threshold(calibration.apply(raw), y, precision=precision, recall=recall)
    held = _held_out(y, seed)
    old: Calibration = verifier.calibration
    return CalibrationReport(
        calibration=calibration,
        threshold=choice.threshold,
        precision=choice.precision,
        recall=choice.recall,
        error_before=expected_calibration_error(old.apply(raw[held]), y[held]),
        error_after=calibration.error if calibration.error is not None else float("nan"),
        auc=area_under_curve(raw, y),
        pairs=len(pairs),
    )


def raw_scores(
    verifier: Verifier, pairs: Sequence[LabelledPair], progress: Callable[[int, int], None] | None = None
) -> FloatArray:
    """A verifier's raw scores of pairs, shape (n,), in the order given; each query's pairs are scored together.

    Args:
        verifier: gives them.
        pairs: in any order.
        progress: told after each query how many pairs are done, and of how many.
    """
    by_query: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        by_query.setdefault(pair.query, []).append(i)
    raw = np.empty(len(pairs), dtype=np.float32)
    done = 0
    for query, rows in by_query.items():
        raw[rows] = verifier.raw_scores(query, [pairs[i].passage for i in rows])
        done += len(rows)
        if progress is not None:
            progress(done, len(pairs))
    return raw


def _fit(x: npt.NDArray[np.float64], y: _Bools, method: Method) -> AnyCalibration:
    return _fit_platt(x, y) if method == "platt" else _fit_isotonic(x, y)


def _fit_platt(x: npt.NDArray[np.float64], y: _Bools) -> PlattCalibration:
    """A logistic fit; each label counts a little as the other one (Platt's targets), so a clean split stays finite."""
    linear_model = _sklearn("linear_model")
    spread = float(x.std())
    if np.ptp(x) == 0:
        raise CalibrationError(f"all {x.size} raw scores are {x[0]:.6g}: this verifier doesn't tell these pairs apart")
    z = (x - x.mean()) / spread
    n, positives = y.size, int(y.sum())
    high, low = (positives + 1) / (positives + 2), 1 / (n - positives + 2)
    target = np.where(y, high, low)
    model = linear_model.LogisticRegression(C=1e6, max_iter=1000).fit(
        np.concatenate([z, z])[:, None],
        np.repeat([1, 0], n),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    slope = float(model.coef_[0, 0]) / spread
    if slope <= 0:
        raise CalibrationError(
            f"relevant pairs score no higher than the others (AUC {area_under_curve(x.astype(np.float32), y):.3f}): "
            "check the labels, or use another verifier for these texts"
        )
    return PlattCalibration(slope=slope, intercept=float(model.intercept_[0]) - slope * float(x.mean()))


def _fit_isotonic(x: npt.NDArray[np.float64], y: _Bools) -> IsotonicCalibration:
    model = _sklearn("isotonic").IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y.astype(float))
    return IsotonicCalibration(
        raw=tuple(map(float, model.X_thresholds_)),
        probability=tuple(map(float, np.maximum.accumulate(np.clip(model.y_thresholds_, 0.0, 1.0)))),
    )


def _sklearn(module: str) -> ModuleType:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as cause:
        raise missing_extra("scikit-learn", "models", "fitting a calibration") from cause


def _held_out(y: _Bools, seed: int) -> _Bools:
    """Which pairs to keep out of a first fit: the same share of each label."""
    held = np.zeros(y.size, dtype=np.bool_)
    rng = np.random.default_rng(seed)
    for label in (True, False):
        rows = rng.permutation(np.flatnonzero(y == label))
        held[rows[: max(1, round(HELD_OUT * rows.size))]] = True
    return held


def _checked(raw: Scores, relevant: Labels, method: Method) -> tuple[npt.NDArray[np.float64], _Bools]:
    if method not in LEAST_PAIRS:
        raise CalibrationError(f"method is {method!r}: choose one of {', '.join(LEAST_PAIRS)}")
    x, y = score_arrays(raw, relevant)
    least, few = LEAST_PAIRS[method], min(int(y.sum()), int((~y).sum()))
    if x.size < least or few < LEAST_OF_A_LABEL:
        raise CalibrationError(
            f"{x.size} pairs, {few} of the rarer label, are too few for {method!r}: label {least} or more, "
            f"with {LEAST_OF_A_LABEL} or more of each label"
        )
    return x, y
