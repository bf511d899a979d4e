"""Test the output with a logit per token that is added to a quantised graph."""

import shutil

import numpy as np
import onnx
import pytest

from meve.components.verifiers._onnx_runtime import TOKEN_LOGITS, OnnxRuntime
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.errors import ModelError
from meve.training.onnx_dequantize import dequantize_onnx
from meve.training.token_head import add_token_head, hidden_states, remove_token_head

pytestmark = pytest.mark.slow

UNITS, LAYERS = 384, 5
PAIRS = [
    ("When was the tower opened?", "The tower was opened in 1889."),
    ("Who wrote Emma?", "Emma is a novel. Jane Austen wrote it."),
]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return a folder of the shipped verifier without its own logits per token."""
    folder = tmp_path_factory.mktemp("models") / "bare"
    shutil.copytree(VERIFIER_FOLDER, folder)
    graph = folder / "onnx" / "model.onnx"
    model = onnx.load(graph)
    remove_token_head(model)
    onnx.save(model, graph)
    return folder


@pytest.fixture
def with_head(bare, tmp_path):
    folder = tmp_path / "with_head"
    shutil.copytree(bare, folder)
    add(folder, {4: 2.0, 5: -1.0}, relevance=3.0, bias=0.5)
    return folder


def add(folder, by_layer, *, units=UNITS, **settings):
    graph = folder / "onnx" / "model.onnx"
    weights = {layer: np.full(units, value, dtype=np.float32) for layer, value in by_layer.items()}
    add_token_head(graph, graph, weights=weights, **settings)


def test_relevance_is_equal_to_the_bit_with_and_without_logits_per_token(bare, with_head):
    plain, extended = (OnnxRuntime.from_folder(folder, threads=1) for folder in (bare, with_head))
    assert not plain.rates_tokens
    assert extended.rates_tokens
    for pair in PAIRS:
        expected = plain.logits([[pair]])[0]
        np.testing.assert_array_equal(extended.logits([[pair]])[0], expected)
        np.testing.assert_array_equal(extended.read([[pair]])[0][0], expected)


def test_logit_is_the_weighted_sum_of_the_hidden_states(with_head):
    model = onnx.load(with_head / "onnx" / "model.onnx")
    names = hidden_states(model)
    assert len(names) == LAYERS
    for name in names:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    onnx.save(model, with_head / "onnx" / "model.onnx")
    runtime = OnnxRuntime.from_folder(with_head, threads=1)
    outputs = runtime._session.run([TOKEN_LOGITS, *names, "logits"], runtime.build_inputs(PAIRS[:1]))
    expected = 2.0 * outputs[4].sum(axis=2) - outputs[5].sum(axis=2) + 3.0 * outputs[-1] + 0.5
    np.testing.assert_allclose(outputs[0], expected, rtol=1e-4, atol=1e-3)


def test_second_head_replaces_the_first(with_head):
    before = (with_head / "onnx" / "model.onnx").stat().st_size
    add(with_head, {4: 0.0, 5: 0.0}, bias=3.0)
    (_, (reading,)) = OnnxRuntime.from_folder(with_head, threads=1).read([PAIRS[:1]])[0]
    np.testing.assert_array_equal(reading.logits, np.full(len(reading.spans), 3.0))
    assert (with_head / "onnx" / "model.onnx").stat().st_size == before


def test_tokens_are_those_of_the_passage_alone(with_head):
    readings = OnnxRuntime.from_folder(with_head, threads=1).read([PAIRS])[0][1]
    for (_, passage), reading in zip(PAIRS, readings, strict=True):
        assert "".join(passage[a:b] for a, b in reading.spans) == passage.replace(" ", "")


@pytest.mark.parametrize(
    ("by_layer", "units"), [({}, UNITS), ({0: 1.0}, UNITS), ({LAYERS + 1: 1.0}, UNITS), ({5: 1.0}, 3)]
)
def test_unknown_layer_or_wrong_width_raises_error(bare, by_layer, units):
    before = (bare / "onnx" / "model.onnx").read_bytes()
    with pytest.raises(ModelError, match=r"weights must hold arrays of shape \(384,\) by layers from 1 to 5"):
        add(bare, by_layer, units=units)
    assert (bare / "onnx" / "model.onnx").read_bytes() == before


def test_graph_with_logits_per_token_can_be_dequantised(with_head, tmp_path):
    assert (dequantize_onnx(with_head, tmp_path / "whole") / "model.safetensors").is_file()
