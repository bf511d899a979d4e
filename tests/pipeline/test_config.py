"""Test settings, calibrations, vectors and formulas."""

import json
from dataclasses import fields

import numpy as np
import pytest

from meve import RetrieverConfig
from meve._formulas import bm25_idf, bm25_norm, expected_calibration_error, normalize, sigmoid
from meve._vectors import validate_vectors
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration, calibration_from_dict
from meve.errors import CalibrationError, ConfigurationError, VectorError
from meve.pipeline.config import Overrides


def test_config_round_trips_through_json():
    config = RetrieverConfig(threshold=0.3, limit=4, citations=True, deadline=0.5, tokens="gpt2", lexical="rank_bm25")
    assert RetrieverConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(ConfigurationError, match="'theta'"):
        RetrieverConfig.from_dict({"theta": 1})


def test_override_returns_a_changed_copy():
    config = RetrieverConfig()
    assert config.override(limit=3).limit == 3
    assert config.limit is None
    assert config.override() is config


def test_overrides_equal_the_config_fields():
    assert set(Overrides.__annotations__) == {f.name for f in fields(RetrieverConfig)}


@pytest.mark.parametrize(
    "calibration",
    [
        PlattCalibration(slope=3.0, intercept=-1.5, fitted_on="pairs", pairs=9, error=0.1),
        IsotonicCalibration(raw=(0.0, 0.5, 1.0), probability=(0.0, 0.2, 0.9)),
    ],
)
def test_calibration_round_trips_through_json_and_is_monotonic(calibration):
    again = calibration_from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again == calibration
    p = again.apply(np.linspace(-2, 2, 101, dtype=np.float32))
    assert (np.diff(p) >= 0).all()
    assert p.min() >= 0
    assert p.max() <= 1


@pytest.mark.parametrize(
    "data",
    [
        {"method": "platt", "slope": -1.0},
        {"method": "platt", "slope": float("nan")},
        {"method": "platt", "slop": 1.0},
        {"method": "isotonic", "raw": [0, 1], "probability": [0.5]},
        {"method": "isotonic", "raw": [1, 0], "probability": [0.1, 0.5]},
        {"method": "isotonic", "raw": [0, 1], "probability": [0.5, 0.1]},
        {"method": "isotonic", "raw": [0, 1], "probability": [0.5, 1.1]},
        {"method": "isotonic", "raw": [], "probability": []},
        {"method": "beta"},
        {},
    ],
)
def test_invalid_calibration_raises_error(data):
    with pytest.raises(CalibrationError):
        calibration_from_dict(data)


@pytest.mark.parametrize("vectors", [[1.0, float("nan")], [1.0], [[1.0, 2.0]], ["a", "b"], [float("inf"), 0.0], None])
def test_invalid_vectors_raise_error(vectors):
    with pytest.raises(VectorError, match="somebody"):
        validate_vectors(vectors, (2,), "somebody")


def test_normalize_gives_length_one_and_keeps_zero():
    assert np.allclose(normalize(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])


def test_sigmoid_of_ln_3_is_three_quarters():
    assert sigmoid(np.array([np.log(3.0)]))[0] == pytest.approx(0.75)


def test_bm25_weights_match_hand_computed_values():
    assert bm25_idf(np.array([1]), 3)[0] == pytest.approx(np.log(1 + 2.5 / 1.5))
    assert bm25_norm(np.array([4, 8]), 4.0, k1=1.5, b=0.75).tolist() == pytest.approx([1.5, 1.5 * 1.75])
    assert bm25_idf(np.array([3]), 3)[0] > 0


def test_calibration_error_matches_hand_computed_value():
    p = np.array([0.1, 0.1, 0.7, 0.7])
    assert expected_calibration_error(p, np.array([False, False, True, True])) == pytest.approx(0.2)
    assert expected_calibration_error(np.array([]), np.array([], dtype=bool)) == 0.0
