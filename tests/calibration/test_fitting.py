"""Fitting: calibrations that tell the truth, thresholds that keep their promise, and errors that say why not."""

import sys
from typing import Any

import numpy as np
import pytest

from meve._formulas import expected_calibration_error, sigmoid
from meve.calibration.fitting import (
    Method,
    ThresholdChoice,
    area_under_curve,
    calibrate,
    choose_threshold,
    fit_calibration,
)
from meve.calibration.maps import IsotonicCalibration, PlattCalibration, calibration_from_dict
from meve.errors import CalibrationError, MissingExtraError
from meve.testing.fakes import OverlapVerifier
from meve.types import FloatArray, LabelledPair


def drawn(n: int = 4000, seed: int = 1) -> tuple[FloatArray, np.ndarray]:
    """Raw scores whose true probability is sigmoid(3x - 2), and labels drawn from it."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=n).astype(np.float32)
    return raw, rng.random(n) < sigmoid(3 * raw - 2)


class TestFit:
    def test_platt_finds_the_two_numbers(self) -> None:
        """From labels drawn with slope 3 and intercept -2, it finds both, near enough."""
        fit = fit_calibration(*drawn(), fitted_on="drawn")
        assert isinstance(fit, PlattCalibration)
        assert fit.slope == pytest.approx(3, rel=0.1)
        assert fit.intercept == pytest.approx(-2, rel=0.1)
        assert (fit.fitted_on, fit.pairs) == ("drawn", 4000)
        assert fit.error is not None
        assert fit.error < 0.04

    @pytest.mark.parametrize("method", ["platt", "isotonic"])
    def test_new_pairs_find_it_truthful(self, method: Method) -> None:
        """On pairs it never saw, what it promises comes true."""
        fit = fit_calibration(*drawn(), method=method)
        raw, relevant = drawn(seed=2)
        assert expected_calibration_error(fit.apply(raw), relevant) < 0.04
        assert calibration_from_dict(fit.to_dict()) == fit

    def test_isotonic_follows_a_shape_that_no_sigmoid_has(self) -> None:
        """Relevance in two steps: 0.1 below, 0.5 above 0; a sigmoid can't do that."""
        rng = np.random.default_rng(0)
        raw = rng.uniform(-1, 1, 5000).astype(np.float32)
        relevant = rng.random(5000) < np.where(raw < 0, 0.1, 0.5)
        fit = fit_calibration(raw, relevant, method="isotonic")
        assert isinstance(fit, IsotonicCalibration)
        np.testing.assert_allclose(fit.apply(np.array([-0.5, 0.5], np.float32)), [0.1, 0.5], atol=0.06)

    def test_the_error_is_of_pairs_kept_out(self) -> None:
        """Isotonic fits its own pairs perfectly, noise and all; the stated error doesn't fall for it."""
        rng = np.random.default_rng(0)
        raw, relevant = rng.normal(size=200).astype(np.float32), rng.random(200) < 0.5
        fit = fit_calibration(raw, relevant, method="isotonic")
        assert fit.error is not None
        assert fit.error > expected_calibration_error(fit.apply(raw), relevant) + 0.02

    def test_a_clean_split_stays_finite(self) -> None:
        """Labels that a threshold parts perfectly give a steep fit, and not an infinite one."""
        raw = np.linspace(-1, 1, 40, dtype=np.float32)
        fit = fit_calibration(raw, raw > 0)
        p = fit.apply(raw)
        assert 0.5 < p[-1] < 1
        assert 0 < p[0] < 0.5

    def test_the_same_seed_gives_the_same_fit(self) -> None:
        """Two runs agree in every digit; another seed splits otherwise."""
        assert fit_calibration(*drawn(200), seed=3) == fit_calibration(*drawn(200), seed=3)
        assert fit_calibration(*drawn(200), seed=3).error != fit_calibration(*drawn(200), seed=4).error

    @pytest.mark.parametrize(
        ("raw", "relevant", "says"),
        [
            ([0.1] * 19, [True] * 10 + [False] * 9, "19 pairs.*too few"),
            ([0.1] * 40, [True] * 4 + [False] * 36, "4 of the rarer label"),
            ([0.1] * 40, [True] * 40, "all relevant"),
            ([0.1] * 40, [False] * 40, "all not relevant"),
            ([], [], "no pairs"),
            ([float("nan")] * 40, [True, False] * 20, "40 of 40 scores are NaN"),
            ([0.1] * 40, [True, False] * 10, r"\(40,\).*\(20,\)"),
            ([0.1] * 40, [0.5] * 40, "True or False"),
            ([0.1] * 40, [True, False] * 20, "doesn't tell these pairs apart"),
            (list(range(40)), [True] * 20 + [False] * 20, r"no higher than the others \(AUC 0.000\)"),
        ],
    )
    def test_pairs_that_can_not_be_fitted_are_refused(self, raw: Any, relevant: Any, says: str) -> None:
        """The error says what is wrong with them."""
        with pytest.raises(CalibrationError, match=says):
            fit_calibration(raw, relevant)

    def test_unknown_methods_and_thin_isotonic_fits_are_refused(self) -> None:
        """Isotonic wants more pairs than Platt."""
        with pytest.raises(CalibrationError, match=r"'beta'.*platt, isotonic"):
            fit_calibration(*drawn(50), method="beta")  # type: ignore[arg-type]
        with pytest.raises(CalibrationError, match=r"50 pairs.*label 100 or more"):
            fit_calibration(*drawn(50), method="isotonic")

    def test_without_scikit_learn_the_pip_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error says what to install."""
        monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'meve\[models\]'"):
            fit_calibration(*drawn(50))


class TestThreshold:
    P = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    Y = (True, True, False, True, False, False)

    def test_a_precision_is_reached_with_the_most_recall(self) -> None:
        """Precision 1 keeps the first two of three; precision 0.75 keeps four."""
        assert choose_threshold(self.P, self.Y, precision=1) == ThresholdChoice(
            threshold=0.8, precision=1.0, recall=pytest.approx(2 / 3)
        )
        assert choose_threshold(self.P, self.Y, precision=0.75).threshold == 0.6

    def test_a_recall_is_reached_with_the_most_precision(self) -> None:
        """All three relevant ones lie at 0.6 or more."""
        choice = choose_threshold(self.P, self.Y, recall=1)
        assert (choice.threshold, choice.precision, choice.recall) == (0.6, 0.75, 1.0)

    def test_without_a_target_the_best_f1(self) -> None:
        """Keeping four: precision 3/4, recall 1, F1 6/7."""
        assert choose_threshold(self.P, self.Y).threshold == 0.6

    def test_ties_are_kept_or_dropped_together(self) -> None:
        """Equal probabilities can't be told apart by a threshold."""
        choice = choose_threshold([0.5, 0.5, 0.1], [True, False, False])
        assert (choice.threshold, choice.precision, choice.recall) == (0.5, 0.5, 1.0)

    def test_the_threshold_does_what_it_says(self) -> None:
        """Applied with >= to the same float32 probabilities, it gives the stated precision and recall."""
        raw, relevant = drawn(500)
        p = sigmoid(raw)
        choice = choose_threshold(p, relevant, precision=0.6)
        kept = p >= np.float32(choice.threshold)
        assert relevant[kept].mean() == pytest.approx(choice.precision)
        assert kept[relevant].mean() == pytest.approx(choice.recall)

    def test_a_target_out_of_reach_names_the_best(self) -> None:
        """The message holds what could be had."""
        with pytest.raises(CalibrationError, match=r"precision 0.9 with recall 1.*at recall 1 .* is 0\.7500"):
            choose_threshold(self.P, self.Y, precision=0.9, recall=1)
        with pytest.raises(CalibrationError, match=r"precision 0.9 .*the best precision is 0\.5000"):
            choose_threshold([0.9, 0.8], [False, True], precision=0.9)

    @pytest.mark.parametrize(
        ("p", "options", "says"),
        [((2.0, 0.1), {}, "between 0.1 and 2"), ((0.9, 0.1), {"precision": 0}, "precision is 0"),
         ((0.9, 0.1), {"recall": 1.1}, "recall is 1.1"), ((float("nan"), 0.1), {}, "NaN")],
    )  # fmt: skip
    def test_bad_values_are_refused(self, p: Any, options: Any, says: str) -> None:
        """Logits for probabilities, or targets out of range."""
        with pytest.raises(CalibrationError, match=says):
            choose_threshold(p, [True, False], **options)


def test_auc_counts_ties_half_and_agrees_with_scikit_learn() -> None:
    """The rank formula gives what scikit-learn's curve gives."""
    from sklearn.metrics import roc_auc_score

    raw, relevant = drawn(300)
    rounded = np.round(raw, 1)
    assert area_under_curve(rounded, relevant) == pytest.approx(roc_auc_score(relevant, rounded))


class TestCalibrate:
    PAIRS = tuple(
        LabelledPair(query=f"red blue {i}", passage=passage, relevant=relevant)
        for i in range(20)
        for passage, relevant in (
            (f"red blue {i}", True), (f"red {i}", i % 4 != 0), ("red", i % 4 == 0), ("green", False), ("grey", False),
        )
    )  # fmt: skip

    def test_it_fits_and_chooses_and_changes_nothing(self) -> None:
        """The report holds a better calibration, a threshold that keeps its promise, and the verifier is as before."""
        verifier = OverlapVerifier(PlattCalibration(slope=0.1))
        before = verifier.calibration
        seen: list[tuple[int, int]] = []
        report = calibrate(
            verifier, self.PAIRS, precision=0.8, fitted_on="colours", progress=lambda *done: seen.append(done)
        )
        assert verifier.calibration is before
        assert report.error_after < report.error_before
        assert report.precision >= 0.8
        assert report.auc > 0.9
        assert report.pairs == 100
        assert report.calibration.fitted_on == "colours"
        assert seen == [(5 * i, 100) for i in range(1, 21)]
        scores = verifier.with_calibration(report.calibration).score("red blue 1", ["red blue 1", "green"])
        assert scores[0] >= report.threshold > scores[1]

    def test_pairs_of_a_query_need_not_stand_together(self) -> None:
        """Shuffled pairs give the same AUC."""
        shuffled = [self.PAIRS[i] for i in np.random.default_rng(0).permutation(len(self.PAIRS))]
        assert calibrate(OverlapVerifier(), shuffled).auc == calibrate(OverlapVerifier(), self.PAIRS).auc

    def test_too_few_pairs_are_refused_before_the_model_runs(self) -> None:
        """The costly part comes after the checks."""

        class Never(OverlapVerifier):
            def raw_scores(self, query: str, passages: Any) -> FloatArray:
                raise AssertionError("asked")

        with pytest.raises(CalibrationError, match="too few"):
            calibrate(Never(), self.PAIRS[:5])
