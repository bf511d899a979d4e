"""Fits a calibration and a threshold to labelled pairs, and measures their quality."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from meve._formulas import expected_calibration_error
from meve.calibration.probability_maps import AnyCalibration, IsotonicCalibration, PlattCalibration
from meve.calibration.thresholds import LabelsLike, ScoresLike, area_under_curve, check_scores, choose_threshold
from meve.errors import CalibrationError, missing_extra
from meve.ports import Calibration
from meve.types import FloatArray, LabelledPair

Method = Literal["platt", "isotonic"]

LEAST_PAIRS = {"platt": 20, "isotonic": 100}
"""The minimum number of pairs for each method; fewer would be overfitted."""
LEAST_OF_A_LABEL = 5
ENOUGH_RELEVANT = 50
"""With fewer relevant pairs, one more or less moves precision and recall at a threshold by over two points."""
HELD_OUT = 0.3
"""The share of pairs held out of a first fit, to measure its error."""

_Bools = npt.NDArray[np.bool_]


class RawScorer(Protocol):
    """What can be calibrated, for example a verifier."""

    @property
    def calibration(self) -> Calibration:
        """The present map from raw scores to probabilities."""

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return uncalibrated scores, shape (n,), in the order given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The result of `calibrate`, for `verifier.with_calibration` and the configuration's threshold."""

    calibration: AnyCalibration
    threshold: float
    precision: float
    """Precision at that threshold, on these pairs."""
    recall: float
    """Recall at that threshold, on these pairs."""
    error_before: float
    """Expected calibration error, in [0, 1], of the verifier's previous calibration, on held-out pairs."""
    error_after: float
    """Expected calibration error, in [0, 1], of the new calibration, on the same pairs."""
    auc: float
    """The probability that a relevant pair outscores another one, in [0, 1]; 0.5 is chance."""
    pairs: int
    relevant: int
    """The number of relevant pairs."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that say why the threshold may be worse on new questions, and what to do; often none."""
        sentences = []
        if self.relevant < ENOUGH_RELEVANT:
            sentences.append(
                f"only {self.relevant} of the {self.pairs} pairs are relevant, so the threshold {self.threshold:.3f} "
                f"may fit them by chance: label {ENOUGH_RELEVANT} relevant pairs or more"
            )
        if self.recall < 0.5:
            sentences.append(
                f"the threshold {self.threshold:.3f} keeps {self.recall:.0%} of the {self.relevant} relevant pairs, so "
                "most right passages won't be verified: calibrate again with a lower target precision, or without one"
            )
        return tuple(sentences)


def fit_calibration(
    raw: ScoresLike,
    relevant: LabelsLike,
    *,
    method: Method = "platt",
    fitted_on: str = "",
    seed: int = 0,
) -> AnyCalibration:
    """Fit raw scores to labels: first on a part, to measure the error on the rest; then on all.

    Args:
        raw: a model's raw scores, shape (n,).
        relevant: whether each pair is relevant, shape (n,).
        method: `platt`, with two parameters; or `isotonic`, any rising curve, for a thousand pairs or more.
        fitted_on: where the pairs came from, saved with the calibration.
        seed: the seed of the split.

    Raises:
        CalibrationError: too few pairs, one label only, NaN, lengths that differ, or scores that don't rise with
            relevance.
        MissingExtraError: scikit-learn isn't installed.

    Source: Platt (1999), with his smoothed targets; Zadrozny and Elkan (2002).
    """
    x, y = _check_pairs(raw, relevant, method)
    held_out = _split_held_out(y, seed)
    fit = _fit_platt if method == "platt" else _fit_isotonic
    partial_fit = fit(x[~held_out], y[~held_out])
    error = expected_calibration_error(partial_fit.apply(np.asarray(x[held_out], dtype=np.float32)), y[held_out])
    return replace(fit(x, y), fitted_on=fitted_on, pairs=int(x.size), error=error)


def calibrate(
    verifier: RawScorer,
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
        pairs: queries with relevant and irrelevant passages, in the proportion that retrieval returns them; the
            calibration depends on that proportion.
        method: `platt` or `isotonic`.
        precision: see `choose_threshold`.
        recall: see `choose_threshold`.
        fitted_on: where the pairs came from, saved with the calibration.
        seed: the seed of the split on which errors are measured.
        progress: called after each query with the number of scored pairs and their total.

    Raises:
        CalibrationError: too few pairs, one label only, or an unreachable target.
        MissingExtraError: scikit-learn isn't installed.
        QueryError: a query of more than 4,096 tokens.
        ModelError: the verifier failed.
    """
    pairs = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    invalid = [pair for pair in pairs if not isinstance(pair, LabelledPair)]
    if invalid:
        wanted = "LabelledPair(query=…, passage=…, relevant=…)"
        raise CalibrationError(f"pairs must be of the form {wanted}, got {invalid[0]!r:.80}")
    y = np.asarray([pair.relevant for pair in pairs], dtype=np.bool_)
    _check_pairs(np.zeros(len(pairs)), y, method)  # before the costly scoring
    raw = raw_scores(verifier, pairs, progress)
    calibration = fit_calibration(raw, y, method=method, fitted_on=fitted_on, seed=seed)
    choice = choose_threshold(calibration.apply(raw), y, precision=precision, recall=recall)
    held_out = _split_held_out(y, seed)
    old: Calibration = verifier.calibration
    return CalibrationReport(
        calibration=calibration,
        threshold=choice.threshold,
        precision=choice.precision,
        recall=choice.recall,
        error_before=expected_calibration_error(old.apply(raw[held_out]), y[held_out]),
        error_after=calibration.error if calibration.error is not None else float("nan"),
        auc=area_under_curve(raw, y),
        pairs=len(pairs),
        relevant=int(y.sum()),
    )


def raw_scores(
    verifier: RawScorer, pairs: Sequence[LabelledPair], progress: Callable[[int, int], None] | None = None
) -> FloatArray:
    """Return a verifier's raw scores of pairs, shape (n,), in the order given; pairs of one query are scored together.

    Args:
        verifier: gives the raw scores.
        pairs: in any order.
        progress: called after each query with the number of scored pairs and their total.
    """
    by_query: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        by_query.setdefault(pair.query, []).append(i)
    raw = np.empty(len(pairs), dtype=np.float32)
    scored = 0
    for query, rows in by_query.items():
        raw[rows] = verifier.raw_scores(query, [pairs[i].passage for i in rows])
        scored += len(rows)
        if progress is not None:
            progress(scored, len(pairs))
    return raw


def _fit_platt(x: npt.NDArray[np.float64], y: _Bools) -> PlattCalibration:
    """Fit a logistic curve with Platt's smoothed targets, so that separable labels give finite parameters."""
    spread = float(x.std())
    if np.ptp(x) == 0:
        raise CalibrationError(f"all {x.size} raw scores are {x[0]:.6g}: this verifier can't separate these pairs")
    z = (x - x.mean()) / spread
    n, positives = y.size, int(y.sum())
    high, low = (positives + 1) / (positives + 2), 1 / (n - positives + 2)
    target = np.where(y, high, low)
    model = (
        _sklearn("linear_model")
        .LogisticRegression(C=1e6, max_iter=1000)
        .fit(
            np.concatenate([z, z])[:, None],
            np.repeat([1, 0], n),
            sample_weight=np.concatenate([target, 1 - target]),
        )
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


def _split_held_out(y: _Bools, seed: int) -> _Bools:
    """Return which pairs to hold out of a first fit: the same share of each label."""
    held_out = np.zeros(y.size, dtype=np.bool_)
    rng = np.random.default_rng(seed)
    for label in (True, False):
        rows = rng.permutation(np.flatnonzero(y == label))
        held_out[rows[: max(1, round(HELD_OUT * rows.size))]] = True
    return held_out


def _check_pairs(raw: ScoresLike, relevant: LabelsLike, method: Method) -> tuple[npt.NDArray[np.float64], _Bools]:
    if method not in LEAST_PAIRS:
        raise CalibrationError(f"method must be one of {', '.join(LEAST_PAIRS)}, got {method!r}")
    x, y = check_scores(raw, relevant)
    least, few = LEAST_PAIRS[method], min(int(y.sum()), int((~y).sum()))
    if x.size < least or few < LEAST_OF_A_LABEL:
        raise CalibrationError(
            f"got {x.size} pairs for {method!r}, {few} of them with the rarer label: label {least} or more, "
            f"at least {LEAST_OF_A_LABEL} of each label"
        )
    return x, y
