"""A quantised graph: smaller, ordering as the whole one does, and refused where it doesn't."""

import pytest

from meve.errors import ModelError, ModelNotFoundError
from meve.parts.verifiers import onnx_quantize
from meve.parts.verifiers.cross_encoder import CrossEncoderVerifier
from meve.parts.verifiers.onnx_quantize import quantize_onnx
from meve.testing.models import tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROBES = [("what orbits the earth", "the moon"), ("what is bread", "the cat is bread"), ("a", "moon moon the harbour")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def test_it_is_smaller_and_orders_as_the_whole_model_does(folder, tmp_path):
    """Random weights are too wild for nearness; a trained model's scores are held against it where it is made."""
    agreement = quantize_onnx(folder, tmp_path / "small", PROBES)
    assert agreement >= onnx_quantize.LEAST_AGREEMENT
    whole, small = folder / "model.safetensors", tmp_path / "small" / "onnx" / "model.onnx"
    assert small.stat().st_size < 0.7 * whole.stat().st_size
    judges = (
        CrossEncoderVerifier.from_name(str(folder), device="cpu"),
        CrossEncoderVerifier.from_name(str(tmp_path / "small"), backend="onnx"),
    )
    orders = [sorted(PROBES, key=lambda p, judge=judge: judge.raw_scores(p[0], [p[1]])[0]) for judge in judges]
    assert orders[0] == orders[1]


def test_one_that_orders_otherwise_is_refused_and_nothing_written(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "LEAST_AGREEMENT", 1.1)
    with pytest.raises(ModelError, match="orders 3 probes otherwise"):
        quantize_onnx(folder, tmp_path / "small", PROBES)
    assert not (tmp_path / "small").exists()


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        quantize_onnx(tmp_path / "nowhere", tmp_path / "small")
