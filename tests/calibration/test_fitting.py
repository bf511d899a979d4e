"""Test the fitting of calibrations and the choice of thresholds."""

import sys
from typing import Any

import numpy as np
import pytest

from meve._formulas import expected_calibration_error, sigmoid
from meve.calibration.fitting import CalibrationReport, Method, calibrate, fit_calibration
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration, calibration_from_dict
from meve.calibration.thresholds import ThresholdChoice, area_under_curve, choose_threshold
from meve.errors import CalibrationError, MissingExtraError
from meve.testing.fakes import OverlapVerifier
from meve.types import FloatArray, LabelledPair


def drawn(n: int = 4000, seed: int = 1) -> tuple[FloatArray, np.ndarray]:
    """Return raw scores with probability sigmoid(3x - 2), and labels drawn from it."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=n).astype(np.float32)
    return raw, rng.random(n) < sigmoid(3 * raw - 2)


class TestFit:
    def test_platt_recovers_parameters(self) -> None:
        fit = fit_calibration(*drawn(), fitted_on="drawn")
        assert isinstance(fit, PlattCalibration)
        assert fit.slope == pytest.approx(3, rel=0.1)
        assert fit.intercept == pytest.approx(-2, rel=0.1)
        assert (fit.fitted_on, fit.pairs) == ("drawn", 4000)
        assert fit.error is not None
        assert fit.error < 0.04

    @pytest.mark.parametrize("method", ["platt", "isotonic"])
    def test_platt_is_calibrated_on_new_pairs(self, method: Method) -> None:
        fit = fit_calibration(*drawn(), method=method)
        raw, relevant = drawn(seed=2)
        assert expected_calibration_error(fit.apply(raw), relevant) < 0.04
        assert calibration_from_dict(fit.to_dict()) == fit

    def test_isotonic_fits_a_non_sigmoid_shape(self) -> None:
        """The probability of relevance is 0.1 below 0 and 0.5 above."""
        rng = np.random.default_rng(0)
        raw = rng.uniform(-1, 1, 5000).astype(np.float32)
        relevant = rng.random(5000) < np.where(raw < 0, 0.1, 0.5)
        fit = fit_calibration(raw, relevant, method="isotonic")
        assert isinstance(fit, IsotonicCalibration)
        np.testing.assert_allclose(fit.apply(np.array([-0.5, 0.5], np.float32)), [0.1, 0.5], atol=0.06)

    def test_error_is_measured_on_held_out_pairs(self) -> None:
        rng = np.random.default_rng(0)
        raw, relevant = rng.normal(size=200).astype(np.float32), rng.random(200) < 0.5
        fit = fit_calibration(raw, relevant, method="isotonic")
        assert fit.error is not None
        assert fit.error > expected_calibration_error(fit.apply(raw), relevant) + 0.02

    def test_separable_pairs_give_finite_parameters(self) -> None:
        raw = np.linspace(-1, 1, 40, dtype=np.float32)
        fit = fit_calibration(raw, raw > 0)
        p = fit.apply(raw)
        assert 0.5 < p[-1] < 1
        assert 0 < p[0] < 0.5

    def test_same_seed_gives_same_fit(self) -> None:
        assert fit_calibration(*drawn(200), seed=3) == fit_calibration(*drawn(200), seed=3)
        assert fit_calibration(*drawn(200), seed=3).error != fit_calibration(*drawn(200), seed=4).error

    @pytest.mark.parametrize(
        ("raw", "relevant", "says"),
        [
            ([0.1] * 19, [True] * 10 + [False] * 9, "got 19 pairs.*label 20 or more"),
            ([0.1] * 40, [True] * 4 + [False] * 36, "4 of them with the rarer label"),
            ([0.1] * 40, [True] * 40, "all relevant"),
            ([0.1] * 40, [False] * 40, "all not relevant"),
            ([], [], "no pairs"),
            ([float("nan")] * 40, [True, False] * 20, "40 of 40 scores are NaN"),
            ([0.1] * 40, [True, False] * 10, r"\(40,\).*\(20,\)"),
            ([0.1] * 40, [0.5] * 40, "True or False"),
            ([0.1] * 40, [True, False] * 20, "can't separate these pairs"),
            (list(range(40)), [True] * 20 + [False] * 20, r"no higher than the others \(AUC 0.000\)"),
        ],
    )
    def test_unfittable_pairs_raise(self, raw: Any, relevant: Any, says: str) -> None:
        with pytest.raises(CalibrationError, match=says):
            fit_calibration(raw, relevant)

    def test_unknown_method_and_few_isotonic_pairs_raise(self) -> None:
        with pytest.raises(CalibrationError, match=r"one of platt, isotonic, got 'beta'"):
            fit_calibration(*drawn(50), method="beta")  # type: ignore[arg-type]
        with pytest.raises(CalibrationError, match=r"50 pairs.*label 100 or more"):
            fit_calibration(*drawn(50), method="isotonic")

    def test_missing_scikit_learn_error_names_pip_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'meve\[models\]'"):
            fit_calibration(*drawn(50))


class TestThreshold:
    P = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    Y = (True, True, False, True, False, False)

    def test_precision_target_maximises_recall(self) -> None:
        """Precision 1 keeps two of three relevant pairs; precision 0.75 keeps four pairs."""
        assert choose_threshold(self.P, self.Y, precision=1) == ThresholdChoice(
            threshold=0.8, precision=1.0, recall=pytest.approx(2 / 3)
        )
        assert choose_threshold(self.P, self.Y, precision=0.75).threshold == 0.6

    def test_recall_target_maximises_precision(self) -> None:
        choice = choose_threshold(self.P, self.Y, recall=1)
        assert (choice.threshold, choice.precision, choice.recall) == (0.6, 0.75, 1.0)

    def test_no_target_maximises_f1(self) -> None:
        """Four pairs are kept: precision 3/4, recall 1, F1 6/7."""
        assert choose_threshold(self.P, self.Y).threshold == 0.6

    def test_tied_probabilities_are_kept_or_dropped_together(self) -> None:
        choice = choose_threshold([0.5, 0.5, 0.1], [True, False, False])
        assert (choice.threshold, choice.precision, choice.recall) == (0.5, 0.5, 1.0)

    def test_threshold_reaches_reported_precision_and_recall(self) -> None:
        raw, relevant = drawn(500)
        p = sigmoid(raw)
        choice = choose_threshold(p, relevant, precision=0.6)
        kept = p >= np.float32(choice.threshold)
        assert relevant[kept].mean() == pytest.approx(choice.precision)
        assert kept[relevant].mean() == pytest.approx(choice.recall)

    def test_unreachable_target_error_names_best_value(self) -> None:
        with pytest.raises(CalibrationError, match=r"precision 0.9 with recall 1.*at recall 1 .* is 0\.7500"):
            choose_threshold(self.P, self.Y, precision=0.9, recall=1)
        with pytest.raises(CalibrationError, match=r"precision 0.9 .*the best precision is 0\.5000"):
            choose_threshold([0.9, 0.8], [False, True], precision=0.9)

    @pytest.mark.parametrize(
        ("p", "options", "says"),
        [
            ((2.0, 0.1), {}, r"must be in \[0, 1\], got 0.1 to 2"),
            ((0.9, 0.1), {"precision": 0}, "precision must be above 0 and at most 1, got 0"),
            ((0.9, 0.1), {"recall": 1.1}, "recall must be above 0 and at most 1, got 1.1"),
            ((float("nan"), 0.1), {}, "NaN"),
        ],
    )
    def test_invalid_values_raise(self, p: Any, options: Any, says: str) -> None:
        with pytest.raises(CalibrationError, match=says):
            choose_threshold(p, [True, False], **options)


def test_auc_matches_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    raw, relevant = drawn(300)
    rounded = np.round(raw, 1)
    assert area_under_curve(rounded, relevant) == pytest.approx(roc_auc_score(relevant, rounded))


@pytest.mark.parametrize(
    ("relevant", "recall", "expected"),
    [
        (50, 0.5, []),
        (49, 0.5, ["only 49 of the 88 pairs are relevant"]),
        (13, 0.23, ["only 13 of the 88", "keeps 23% of the 13 relevant pairs"]),
        (50, 0.4, ["keeps 40% of the 50"]),
    ],
)
def test_report_warns_of_few_relevant_pairs_and_low_recall(relevant: int, recall: float, expected: list[str]) -> None:
    report = CalibrationReport(
        calibration=PlattCalibration(),
        threshold=0.9,
        precision=1.0,
        recall=recall,
        error_before=0.1,
        error_after=0.1,
        auc=0.9,
        pairs=88,
        relevant=relevant,
    )
    assert len(report.warnings) == len(expected)
    assert all(part in warning for part, warning in zip(expected, report.warnings, strict=True))


class TestCalibrate:
    PAIRS = tuple(
        LabelledPair(query=f"red blue {i}", passage=passage, relevant=relevant)
        for i in range(20)
        for passage, relevant in (
            (f"red blue {i}", True), (f"red {i}", i % 4 != 0), ("red", i % 4 == 0), ("green", False), ("grey", False),
        )
    )  # fmt: skip

    def test_calibrate_leaves_verifier_unchanged(self) -> None:
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

    def test_pairs_of_a_query_may_be_scattered(self) -> None:
        shuffled = [self.PAIRS[i] for i in np.random.default_rng(0).permutation(len(self.PAIRS))]
        assert calibrate(OverlapVerifier(), shuffled).auc == calibrate(OverlapVerifier(), self.PAIRS).auc

    def test_too_few_pairs_raise_before_scoring(self) -> None:

        class Never(OverlapVerifier):
            def raw_scores(self, query: str, passages: Any) -> FloatArray:
                raise AssertionError("asked")

        with pytest.raises(CalibrationError, match=r"got 5 pairs.*label 20 or more"):
            calibrate(Never(), self.PAIRS[:5])
