"""A fitted estimate of whether a context can carry an answer, from verifier scores and word coverage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from meve._formulas import log_odds
from meve.calibration.thresholds import choose_balanced_threshold
from meve.components.lexical.analyzers import content_words
from meve.components.logistic import LogisticEstimate, fit_logistic
from meve.errors import CalibrationError
from meve.ports import Calibration
from meve.types import ContextPassage, FloatArray

EDGE = 1e-3
"""Probabilities are clipped to [EDGE, 1 - EDGE] before their logit is taken."""
HALF = 0.5
"""The probability from which a passage was verified when the estimate was fitted."""
FEWEST = 40
"""The minimum number of contexts for a fit; at least a quarter of it must be of each kind."""

RAW_RANGE, HALVINGS, TOLERANCE = 50.0, 40, 1e-6
"""The largest raw score looked for when a calibration is inverted, the steps, and the rounding of probabilities."""

FEATURES = ("best", "second", "verified", "sum", "coverage", "asked", "logit")
RISING = ("best", "second", "verified", "sum", "coverage", "logit")
"""The features that never lower the estimate."""


def extract_context_features(query: str, passages: Sequence[ContextPassage]) -> dict[str, float]:
    """Return the features of the estimate.

    Args:
        query: the question.
        passages: the passages of the context, with the verifier's probabilities as scores.

    Returns:
        `best`, `second`: the logits of the two highest probabilities (0.001 where there is none). `verified`: log(1 +
        number of verified passages). `sum`: log(1 + sum of probabilities). `coverage`: the share in [0, 1] of the
        question's content words found in the verified passages. `asked`: log(1 + number of content words in the
        question), since a long question mostly asks for several things. `logit`: the highest raw score of the verifier,
        where the probabilities weigh other evidence too; else 0.
    """
    ranked = sorted(passages, key=lambda p: -(p.score or 0.0))
    scores = [min(max(p.score or 0.0, EDGE), 1 - EDGE) for p in ranked] + [EDGE, EDGE]
    wanted = set(content_words(query))
    verified = [p for p in ranked if p.verified]
    there = {word for p in verified for word in content_words(p.passage.content)}
    return {
        "best": float(log_odds(scores[0])),
        "second": float(log_odds(scores[1])),
        "verified": float(np.log1p(len(verified))),
        "sum": float(np.log1p(sum(p.score or 0.0 for p in ranked))),
        "coverage": len(wanted & there) / len(wanted) if wanted else 0.0,
        "asked": float(np.log1p(len(wanted))),
        "logit": max((p.logit for p in passages if p.logit is not None), default=0.0),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SufficiencyEstimator(LogisticEstimate):
    """A logistic estimate of whether a context suffices."""

    kind = "sufficiency estimate"
    features = FEATURES
    limit = "threshold"

    threshold: float = 0.5
    """The estimate in [0, 1] from which a context counts as sufficient."""
    contexts: int = 0
    measured: Mapping[str, float] = field(default_factory=dict)
    """Balanced accuracy on contexts held out of the fit, by data set."""

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:
        """Return the probability in [0, 1] that this context can carry an answer; 0 for an empty one."""
        if not passages:
            return 0.0
        features = extract_context_features(query, passages)
        return float(
            1 / (1 + np.exp(-(sum(self.weights[name] * features[name] for name in FEATURES) + self.intercept)))
        )


@dataclass(frozen=True, slots=True)
class RecalibratedEstimator:
    """A fitted estimate for probabilities that another calibration made.

    It reads each probability as the calibration that it was fitted with would give it. So calibrating changes which
    passages are verified, but not what an estimate means. Where the other calibration is flat, the lowest raw score
    counts, and the estimate is on the low side.

    Args:
        inner: the fitted estimate.
        given: made the probabilities of the passages.
        fitted: made those that the estimate was fitted on.
    """

    inner: SufficiencyEstimator
    given: Calibration
    fitted: Calibration

    @property
    def name(self) -> str:
        """The name of the fitted estimate."""
        return self.inner.name

    @property
    def threshold(self) -> float:
        """The threshold of the fitted estimate."""
        return self.inner.threshold

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:
        """Return the probability in [0, 1] that this context can carry an answer; 0 for an empty one."""
        scores = np.array([p.score or 0.0 for p in passages], dtype=np.float32)
        known = self.fitted.apply(_invert(self.given, scores)).tolist() if len(scores) else []
        as_fitted = [replace(p, score=s, verified=s >= HALF - EDGE) for p, s in zip(passages, known, strict=True)]
        return self.inner.estimate(query, as_fitted)


@dataclass(frozen=True, slots=True)
class LogitEstimator:
    """An estimate that was fitted to a verifier's own probabilities, for verdicts that weigh other evidence too.

    It reads the passages as the verifier alone judges them, by their logits, so neither that evidence nor its
    calibration changes what an estimate means.

    Args:
        inner: the fitted estimate.
        fitted: the calibration of the verifier when it was fitted.
    """

    inner: SufficiencyEstimator
    fitted: Calibration

    @property
    def name(self) -> str:
        """The name of the fitted estimate."""
        return self.inner.name

    @property
    def threshold(self) -> float:
        """The threshold of the fitted estimate."""
        return self.inner.threshold

    def estimate(self, query: str, passages: Sequence[ContextPassage]) -> float:
        """Return the probability in [0, 1] that this context can carry an answer; 0 for an empty one."""
        return self.inner.estimate(query, [self._judge_alone(passage) for passage in passages])

    def _judge_alone(self, passage: ContextPassage) -> ContextPassage:
        if passage.logit is None:
            return passage
        score = float(self.fitted.apply(np.array([passage.logit], dtype=np.float32))[0])
        return replace(passage, score=score, verified=score >= HALF, logit=None)


def _invert(calibration: Calibration, probabilities: FloatArray) -> FloatArray:
    """Return for each probability, shape (n,), the lowest raw score between -50 and 50 that reaches it."""
    low, high = np.full(len(probabilities), -RAW_RANGE), np.full(len(probabilities), RAW_RANGE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        reaches = calibration.apply(middle.astype(np.float32)) >= probabilities - TOLERANCE
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    return np.asarray(high, dtype=np.float32)


def fit_sufficiency(
    contexts: Sequence[tuple[str, Sequence[ContextPassage]]],
    sufficient: Sequence[bool],
    *,
    name: str,
    verifier: str,
    fitted_on: str = "",
) -> SufficiencyEstimator:
    """Fit the estimate to contexts labelled as sufficient or not. Another verified passage never lowers it.

    Empty contexts are left out of the fit, since the estimate is 0 for them. They count as insufficient when the
    threshold is chosen.

    Args:
        contexts: questions, each with the passages of its context.
        sufficient: whether each context is sufficient.
        name: the name of the estimate.
        verifier: the name of the verifier that scored the passages.
        fitted_on: where the contexts came from.

    Raises:
        CalibrationError: too few contexts that aren't empty, or too few of one kind.
        MissingExtraError: scikit-learn isn't installed.
    """
    filled = [bool(passages) for _, passages in contexts]
    features = [extract_context_features(question, passages) for question, passages in contexts if passages]
    y = np.asarray(sufficient, dtype=np.bool_)[filled]
    if len(y) < FEWEST or min(y.sum(), (~y).sum()) < FEWEST // 4:
        raise CalibrationError(
            f"got {len(y)} contexts, {int(y.sum())} of them sufficient: label {FEWEST} or more, a quarter of each kind"
        )
    weights, intercept = fit_logistic(features, y.tolist(), rising=RISING)
    fitted = SufficiencyEstimator(
        name=name, verifier=verifier, weights=weights, intercept=intercept, fitted_on=fitted_on, contexts=len(y)
    )
    estimates = [fitted.estimate(question, passages) for question, passages in contexts]
    return replace(fitted, threshold=choose_balanced_threshold(np.array(estimates), sufficient))
