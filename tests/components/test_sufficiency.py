"""Test the sufficiency estimate."""

from dataclasses import replace

import numpy as np
import pytest

from meve._formulas import log_odds
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration
from meve.calibration.thresholds import choose_balanced_threshold
from meve.components._shipped_models import find_estimator
from meve.components.embedders.onnx import SHIPPED_MINILM
from meve.components.sufficiency import (
    FEATURES,
    LogitEstimator,
    RecalibratedEstimator,
    SufficiencyEstimator,
    extract_context_features,
    fit_sufficiency,
)
from meve.components.verifiers import SHIPPED_VERIFIER, load_verifier
from meve.errors import CalibrationError, ConfigurationError
from meve.types import ContextPassage, Passage


def passage(score, text="text", verified=None, n=0):
    verified = score >= 0.5 if verified is None else verified
    return ContextPassage(
        passage=Passage(id=f"p{n}", text=text), score=score, verified=verified, origin="dense", tokens=3
    )


def make_contexts(count, seed=0):
    """Return contexts; sufficient ones more often have a high score and the question's words."""
    rng = np.random.default_rng(seed)
    result, labels = [], []
    for n in range(count):
        good = n % 2 == 0
        score = float(np.clip(rng.normal(0.8 if good else 0.4, 0.15), 0.01, 0.99))
        text = "glass tower" if rng.random() < (0.9 if good else 0.2) else "else"
        result.append(("how high is the glass tower", [passage(score, text), passage(0.2, n=1)]))
        labels.append(good)
    return result, labels


def test_features_match_hand_calculation():
    passages = [passage(0.2, "glass"), passage(0.9, "a tower", n=1)]
    features = extract_context_features("how high is the glass tower", passages)
    assert features["best"] == pytest.approx(np.log(9))
    assert features["second"] == pytest.approx(np.log(0.25))
    assert features["verified"] == pytest.approx(np.log(2))
    assert features["sum"] == pytest.approx(np.log(2.1))
    assert features["coverage"] == pytest.approx(1 / 3)
    assert features["asked"] == pytest.approx(np.log(4))
    assert tuple(features) == FEATURES
    assert all(np.isfinite(list(extract_context_features("the", []).values())))


def test_fit_separates_sufficient_contexts():
    result, labels = make_contexts(200)
    estimator = fit_sufficiency(result, labels, name="e", verifier="v", fitted_on="made up")
    tested, truth = make_contexts(200, seed=1)
    estimates = [estimator.estimate(q, p) >= estimator.threshold for q, p in tested]
    assert np.mean([a == b for a, b in zip(estimates, truth, strict=True)]) > 0.9
    assert (estimator.contexts, estimator.fitted_on, estimator.verifier) == (200, "made up", "v")


def test_further_verified_passage_never_lowers_an_estimate():
    contexts, labels = make_contexts(200)
    doubled = [[*passages, *([] if good else passages)] for (_, passages), good in zip(contexts, labels, strict=True)]
    given = [(question, passages) for (question, _), passages in zip(contexts, doubled, strict=True)]
    fitted = fit_sufficiency(given, labels, name="e", verifier="v")  # here more passages tell of insufficient ones
    shipped = [
        find_estimator(SHIPPED_VERIFIER, load_verifier().calibration, name) for name in (SHIPPED_MINILM, "static")
    ]
    rng = np.random.default_rng(0)
    for estimator in (fitted, *shipped):
        for _ in range(100):
            scores = rng.uniform(0.05, 0.99, rng.integers(1, 5)).tolist()
            texts = rng.choice(["glass tower", "else", "how high"], len(scores)).tolist()
            passages = [
                with_logit(passage(s, text, n=n)) for n, (s, text) in enumerate(zip(scores, texts, strict=True))
            ]
            more = [*passages, with_logit(passage(rng.uniform(0.5, 0.99), "glass", n=9))]
            question = "how high is the glass tower"
            assert estimator.estimate(question, more) >= estimator.estimate(question, passages)


def with_logit(given):
    return replace(given, logit=float(log_odds(given.score)))


def test_empty_context_is_insufficient():
    estimator = SufficiencyEstimator(name="e", verifier="v", weights=dict.fromkeys(FEATURES, 0.0), intercept=9.0)
    assert estimator.estimate("q", [passage(0.1)]) > 0.99
    assert estimator.estimate("q", []) == 0.0


def test_another_calibration_leaves_the_estimate_as_it_was():
    given = PlattCalibration(slope=0.4, intercept=-2.0)
    result, labels = make_contexts(200)
    estimator = fit_sufficiency(result, labels, name="e", verifier="v")
    fitted = PlattCalibration(slope=1.3, intercept=0.2)
    again = RecalibratedEstimator(estimator, given=given, fitted=fitted)
    assert (again.name, again.threshold) == (estimator.name, estimator.threshold)
    assert again.estimate("q", []) == 0.0
    raw = np.array([2.0, -1.0], dtype=np.float32)
    before, after = (
        [passage(s, "glass tower", verified=s >= least, n=n) for n, s in enumerate(c.apply(raw).tolist())]
        for c, least in ((fitted, 0.5), (given, 0.0))
    )
    question = "how high is the glass tower"
    assert again.estimate(question, after) == pytest.approx(estimator.estimate(question, before), abs=1e-3)
    assert abs(estimator.estimate(question, after) - estimator.estimate(question, before)) > 0.01


def test_further_evidence_leaves_the_estimate_as_it_was():
    result, labels = make_contexts(200)
    estimator = fit_sufficiency(result, labels, name="e", verifier="v")
    fitted = PlattCalibration(slope=1.3, intercept=0.2)
    reads_logits = LogitEstimator(estimator, fitted=fitted)
    assert (reads_logits.name, reads_logits.threshold) == (estimator.name, estimator.threshold)
    assert reads_logits.estimate("q", []) == 0.0
    raw = np.array([2.0, -1.0], dtype=np.float32)
    alone = [passage(s, "glass tower", verified=n == 0, n=n) for n, s in enumerate(fitted.apply(raw).tolist())]
    weighed = [replace(p, score=0.3, verified=False, logit=float(x)) for p, x in zip(alone, raw, strict=True)]
    question = "how high is the glass tower"
    assert reads_logits.estimate(question, weighed) == pytest.approx(estimator.estimate(question, alone))
    assert abs(estimator.estimate(question, weighed) - estimator.estimate(question, alone)) > 0.01
    assert reads_logits.estimate(question, alone) == estimator.estimate(question, alone), "no logit is known"


def test_where_a_calibration_is_flat_the_estimate_is_on_the_low_side():
    result, labels = make_contexts(200)
    estimator = fit_sufficiency(result, labels, name="e", verifier="v")
    flat = IsotonicCalibration(raw=(-1.0, 0.0, 3.0), probability=(0.1, 0.9, 0.9))
    again = RecalibratedEstimator(estimator, given=flat, fitted=PlattCalibration())
    expected = estimator.estimate("q", [passage(0.5, verified=True)])
    assert again.estimate("q", [passage(0.9, verified=True)]) == pytest.approx(expected, abs=1e-3)


def test_estimator_survives_to_dict():
    result, labels = make_contexts(60)
    estimator = fit_sufficiency(result, labels, name="e", verifier="v")
    assert SufficiencyEstimator.from_dict(estimator.to_dict()) == estimator
    for broken in ({}, {**estimator.to_dict(), "weights": {"best": 1.0}}, {**estimator.to_dict(), "extra": 1}):
        with pytest.raises(ConfigurationError):
            SufficiencyEstimator.from_dict(broken)


def test_too_few_contexts_raise():
    result, labels = make_contexts(60)
    with pytest.raises(CalibrationError, match=r"got \d+ contexts.*label \d+ or more"):
        fit_sufficiency(result[:20], labels[:20], name="e", verifier="v")
    with pytest.raises(CalibrationError, match=r"got \d+ contexts.*label \d+ or more"):
        fit_sufficiency(result, [True] * 60, name="e", verifier="v")
    empty = [("q", []) for _ in result]
    with pytest.raises(CalibrationError, match="0 contexts"):
        fit_sufficiency(empty, labels, name="e", verifier="v")


@pytest.mark.parametrize(
    ("p", "y", "best"),
    [
        ([0.9, 0.1], [True, False], 0.5),
        ([0.3, 0.3, 0.9], [False, True, True], 0.6),
        ([0.5, 0.5], [False, True], None),
    ],
)
def test_balanced_threshold_is_chosen(p, y, best):
    features = choose_balanced_threshold(p, y)
    if best is not None:
        assert features == pytest.approx(best)
    else:
        assert features in (0.0, 1.0), "equal scores can't be told apart"


def test_empty_contexts_count_for_the_threshold():
    result, labels = make_contexts(60)
    noise = [not label if n % 4 == 0 else label for n, label in enumerate(labels)]
    alone = fit_sufficiency(result, noise, name="e", verifier="v")
    both = fit_sufficiency([*result, *[("who?", [])] * 60], [*noise, *[False] * 60], name="e", verifier="v")
    assert both.weights == alone.weights
    assert both.threshold <= alone.threshold
