"""A quantised graph: smaller, ordering as the whole one does, and refused where it doesn't."""

import copy
import shutil

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.transformers.optimizer import optimize_model

from meve.errors import ModelError, ModelNotFoundError
from meve.parts.verifiers import export_onnx, onnx_graph, onnx_quantize
from meve.parts.verifiers.cross_encoder import CrossEncoderVerifier
from meve.parts.verifiers.onnx_graph import first_token_only, smoothed
from meve.parts.verifiers.onnx_quantize import quantize_onnx
from meve.parts.verifiers.onnx_runtime import OnnxRuntime
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


@pytest.fixture(scope="module")
def fused(folder, tmp_path_factory):
    """The graph with its operators fused, and what runs a graph beside the same tokenizer."""
    place = export_onnx(folder, tmp_path_factory.mktemp("whole") / "model")
    return optimize_model(
        str(place / "onnx" / "model.onnx"), model_type="bert", num_heads=2, hidden_size=32
    ).model, place


def said(model, place, tmp_path):
    home = tmp_path / "changed"
    shutil.copytree(place, home, dirs_exist_ok=True)
    onnx.save(model, home / "onnx" / "model.onnx")
    return OnnxRuntime.from_folder(home).logits([PROBES])[0]


def test_the_last_layer_need_not_read_what_the_head_does_not_take(fused, tmp_path):
    """The scores stay, padding and all."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    before = len(model.graph.node)
    assert first_token_only(model)
    assert len(model.graph.node) == before + 2
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=1e-5)


def test_where_the_head_takes_more_nothing_is_left_out(fused):
    """Here another output asks for every token."""
    model = copy.deepcopy(fused[0])
    last = [n for n in model.graph.node if n.op_type == "SkipLayerNormalization"][-1]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.output[0], onnx.TensorProto.FLOAT, None))
    whole = copy.deepcopy(model)
    assert not first_token_only(model)
    assert model == whole


def test_smoothing_changes_no_score_and_evens_out_what_goes_into_products(fused, tmp_path):
    """One channel that is thirty times as large as the others is so no longer."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    product = next(n for n in model.graph.node if n.op_type == "MatMul" and "intermediate" in n.name)
    norm = next(n for n in model.graph.node if product.input[0] in n.output)
    norm.input[2] = "loud"
    model.graph.initializer.append(numpy_helper.from_array(np.array([30.0] + [1.0] * 31, np.float32), "loud"))
    before = said(model, place, tmp_path)
    samples = [OnnxRuntime.from_folder(place).feed([pair]) for pair in PROBES]
    assert norm.op_type == "SkipLayerNormalization"
    spread = [_spread(model, product.input[0], samples)]
    smoothed(model, samples)
    spread.append(_spread(model, product.input[0], samples))
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=2e-3)
    assert spread[1] < spread[0] / 3


def _spread(model, name, samples):
    found = onnx_graph._largest(model, [name], samples)[name]
    return found.max() / np.median(found)


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        quantize_onnx(tmp_path / "nowhere", tmp_path / "small")
