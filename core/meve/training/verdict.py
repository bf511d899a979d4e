"""Is the new verifier better than the one that it replaces? On queries that it hasn't seen."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meve._formulas import expected_calibration_error
from meve.calibration.fitting import fit_calibration, raw_scores
from meve.calibration.maps import AnyCalibration
from meve.calibration.thresholds import area_under_curve
from meve.errors import TrainingError
from meve.evaluation.statistics import Interval, interval, paired_statistic
from meve.ports import Verifier
from meve.types import FloatArray, LabelledPair

FEWEST_QUERIES = 10
"""In a held-out part; with fewer, nothing could be said."""

Progress = Callable[[int, int], None]
"""Called with how many pairs are scored, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Pairs in three parts that share no query."""

    train: tuple[LabelledPair, ...]
    fit: tuple[LabelledPair, ...]
    """For the calibration."""
    test: tuple[LabelledPair, ...]
    """For the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How good a verifier is on the test part."""

    auc: Interval
    """How often a relevant pair outscores another one, over all pairs, in [0, 1]."""
    error: float
    """Expected calibration error, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The new verifier beside the old one, over the same queries."""

    new: Judgement
    old: Judgement
    gain: Interval
    """AUC of the new less that of the old."""
    calibration: AnyCalibration
    """For the new one's raw scores."""

    @property
    def better(self) -> bool:
        """Whether all of the gain's 95 % interval lies above zero."""
        return self.gain.low > 0


def split(pairs: Sequence[LabelledPair], *, share: float = 0.2, seed: int = 0) -> Split:
    """Set queries aside: half of the share to fit the calibration on, half for the verdict.

    Raises:
        TrainingError: so few queries that a part would hold less than ten.
    """
    queries = sorted({pair.query for pair in pairs})
    random.Random(seed).shuffle(queries)
    each = round(share * len(queries) / 2)
    if each < FEWEST_QUERIES:
        needed = round(2 * FEWEST_QUERIES / share)
        raise TrainingError(f"{len(queries)} queries are too few to train and to judge on: label {needed} or more")
    fit, test = set(queries[:each]), set(queries[each : 2 * each])
    return Split(
        train=tuple(p for p in pairs if p.query not in fit and p.query not in test),
        fit=tuple(p for p in pairs if p.query in fit),
        test=tuple(p for p in pairs if p.query in test),
    )


def judged(
    new: Verifier, old: Verifier, parts: Split, *, fitted_on: str, seed: int = 0, progress: Progress | None = None
) -> Verdict:
    """Calibrate the new one, and hold both against the test part.

    Args:
        new: the verifier that was trained.
        old: the one that it would replace, with its own calibration.
        parts: what was kept out of the training.
        fitted_on: what the pairs are called, to be saved with the calibration.
        seed: of the intervals.
        progress: told of the pairs scored.

    Raises:
        CalibrationError: the scores don't rise with relevance, or there are too few pairs.
        ModelError: one of the two failed.
    """
    total = len(parts.fit) + 2 * len(parts.test)
    so_far = 0

    def scored(verifier: Verifier, pairs: Sequence[LabelledPair]) -> FloatArray:
        nonlocal so_far
        found = raw_scores(verifier, pairs, lambda done, _: progress(so_far + done, total) if progress else None)
        so_far += len(pairs)
        return found

    fit = scored(new, parts.fit)
    calibration = fit_calibration(fit, [p.relevant for p in parts.fit], fitted_on=fitted_on, seed=seed)
    mine, theirs = scored(new, parts.test), scored(old, parts.test)
    groups = rows_by_query(parts.test)
    relevant = np.array([p.relevant for p in parts.test])
    ours, before = auc_of(mine, relevant, groups), auc_of(theirs, relevant, groups)
    return Verdict(
        new=_judgement(calibration.apply(mine), relevant, interval(len(groups), ours, seed=seed)),
        old=_judgement(old.calibration.apply(theirs), relevant, interval(len(groups), before, seed=seed)),
        gain=_known(paired_statistic(len(groups), before, ours, seed=seed)),
        calibration=calibration,
    )


def _judgement(p: FloatArray, relevant: np.ndarray, auc: Interval | None) -> Judgement:
    return Judgement(auc=_known(auc), error=expected_calibration_error(p, relevant))


def _known(found: Interval | None) -> Interval:
    if found is None:
        raise TrainingError("the test part holds pairs of one label only: label relevant passages and others")
    return found


def rows_by_query(pairs: Sequence[LabelledPair]) -> list[np.ndarray]:
    """The row numbers of each query's pairs."""
    rows: dict[str, list[int]] = {}
    for n, pair in enumerate(pairs):
        rows.setdefault(pair.query, []).append(n)
    return [np.array(r) for r in rows.values()]


def auc_of(
    scores: FloatArray, relevant: np.ndarray, groups: Sequence[np.ndarray]
) -> Callable[[np.ndarray], float | None]:
    """The AUC over the pairs of the queries drawn, as `interval` asks for it; None where they have one label only."""

    def of(drawn: np.ndarray) -> float | None:
        rows = np.concatenate([groups[n] for n in drawn.tolist()])
        return area_under_curve(scores[rows], relevant[rows]) if 0 < relevant[rows].sum() < len(rows) else None

    return of
