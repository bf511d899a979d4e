"""Compares a new verifier with the one it would replace, on held-out queries."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from meve._formulas import expected_calibration_error
from meve.calibration.fitting import fit_calibration, raw_scores
from meve.calibration.probability_maps import AnyCalibration
from meve.calibration.thresholds import area_under_curve
from meve.errors import TrainingError
from meve.evaluation.statistics import Interval, bootstrap_interval, paired_interval
from meve.ports import Verifier
from meve.types import FloatArray, LabelledPair, Progress

FEWEST_QUERIES = 10
"""The minimum number of queries in a held-out part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSplit:
    """Pairs in three parts that share no query."""

    train: tuple[LabelledPair, ...]
    fit: tuple[LabelledPair, ...]
    """Pairs for the calibration."""
    test: tuple[LabelledPair, ...]
    """Pairs for the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The quality of a verifier on the test part."""

    auc: Interval
    """The probability that a relevant pair outscores another one, over all pairs, in [0, 1]."""
    error: float
    """Expected calibration error, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The comparison of the new verifier with the old one, on the same queries."""

    new: Judgement
    old: Judgement
    gain: Interval
    """AUC of the new verifier minus that of the old one."""
    calibration: AnyCalibration
    """The calibration of the new verifier's raw scores."""

    @property
    def better(self) -> bool:
        """Whether the whole 95 % interval of the gain lies above zero."""
        return self.gain.low > 0


def split_pairs(pairs: Sequence[LabelledPair], *, share: float = 0.2, seed: int = 0) -> PairSplit:
    """Hold out queries: half of the share to fit the calibration, half for the comparison.

    Raises:
        TrainingError: a part would hold fewer than ten queries.
    """
    queries = sorted({pair.query for pair in pairs})
    random.Random(seed).shuffle(queries)
    each = round(share * len(queries) / 2)
    if each < FEWEST_QUERIES:
        needed = round(2 * FEWEST_QUERIES / share)
        raise TrainingError(f"{len(queries)} queries are too few for training and comparison: label {needed} or more")
    fit, test = set(queries[:each]), set(queries[each : 2 * each])
    return PairSplit(
        train=tuple(p for p in pairs if p.query not in fit and p.query not in test),
        fit=tuple(p for p in pairs if p.query in fit),
        test=tuple(p for p in pairs if p.query in test),
    )


def compare_verifiers(
    new: Verifier, old: Verifier, parts: PairSplit, *, fitted_on: str, seed: int = 0, progress: Progress | None = None
) -> Verdict:
    """Calibrate the new verifier and evaluate both on the test part.

    Args:
        new: the trained verifier.
        old: the verifier it would replace, with its own calibration.
        parts: the split; the parts held out of training are used.
        fitted_on: a name for the pairs, saved with the calibration.
        seed: the seed of the confidence intervals.
        progress: called with the number of scored pairs and their total.

    Raises:
        CalibrationError: the scores don't rise with relevance, or there are too few pairs.
        ModelError: one of the verifiers failed.
    """
    total = len(parts.fit) + 2 * len(parts.test)
    so_far = 0

    def score(verifier: Verifier, pairs: Sequence[LabelledPair]) -> FloatArray:
        nonlocal so_far
        scores = raw_scores(verifier, pairs, lambda done, _: progress(so_far + done, total) if progress else None)
        so_far += len(pairs)
        return scores

    fit = score(new, parts.fit)
    calibration = fit_calibration(fit, [p.relevant for p in parts.fit], fitted_on=fitted_on, seed=seed)
    new_scores, old_scores = score(new, parts.test), score(old, parts.test)
    groups = rows_by_query(parts.test)
    relevant = np.array([p.relevant for p in parts.test])
    new_auc = make_auc_statistic(new_scores, relevant, groups)
    old_auc = make_auc_statistic(old_scores, relevant, groups)
    return Verdict(
        new=_judgement(calibration.apply(new_scores), relevant, bootstrap_interval(len(groups), new_auc, seed=seed)),
        old=_judgement(
            old.calibration.apply(old_scores), relevant, bootstrap_interval(len(groups), old_auc, seed=seed)
        ),
        gain=_require_interval(paired_interval(len(groups), old_auc, new_auc, seed=seed)),
        calibration=calibration,
    )


def _judgement(p: FloatArray, relevant: np.ndarray, auc: Interval | None) -> Judgement:
    return Judgement(auc=_require_interval(auc), error=expected_calibration_error(p, relevant))


def _require_interval(scores: Interval | None) -> Interval:
    if scores is None:
        raise TrainingError("the test part holds pairs of one label only: label relevant passages and others")
    return scores


def rows_by_query(pairs: Sequence[LabelledPair]) -> list[np.ndarray]:
    """Return the row numbers of each query's pairs."""
    rows: dict[str, list[int]] = {}
    for n, pair in enumerate(pairs):
        rows.setdefault(pair.query, []).append(n)
    return [np.array(r) for r in rows.values()]


def make_auc_statistic(
    scores: FloatArray, relevant: np.ndarray, groups: Sequence[np.ndarray]
) -> Callable[[np.ndarray], float | None]:
    """Return a statistic for `bootstrap_interval`: the drawn queries' AUC, or None if they have one label only."""

    def compute(drawn: np.ndarray) -> float | None:
        rows = np.concatenate([groups[n] for n in drawn.tolist()])
        return area_under_curve(scores[rows], relevant[rows]) if 0 < relevant[rows].sum() < len(rows) else None

    return compute
