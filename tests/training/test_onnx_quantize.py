"""Test the quantisation of ONNX graphs."""

import copy
import json
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
from safetensors.numpy import load_file, save_file

from meve.components.verifiers import _onnx_export as onnx_export
from meve.components.verifiers import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ModelError, ModelNotFoundError
from meve.testing.tiny_models import save_tiny_model
from meve.training import onnx_quantize
from meve.training.onnx_dequantize import dequantize_onnx
from meve.training.onnx_graph import APART, keep_first_token, quantize_embeddings, scale_tokens, split_outliers
from meve.training.onnx_quantize import quantize_onnx
from meve.training.onnx_rounding import STEPS, round_matrix, round_weights

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROBES = [("what orbits the earth", "the moon"), ("what is bread", "the cat is bread"), ("a", "moon moon the harbour")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def test_quantised_model_is_smaller_and_ranks_alike(folder, tmp_path):
    """Only ranks are compared: random weights quantise badly."""
    agreement = quantize_onnx(folder, tmp_path / "small", PROBES)
    assert agreement >= onnx_quantize.LEAST_AGREEMENT
    stored = onnx.load(tmp_path / "small" / "onnx" / "model.onnx").graph.initializer
    small = sum(numpy_helper.to_array(each).nbytes for each in stored)
    assert small < 0.5 * (folder / "model.safetensors").stat().st_size
    judges = (
        CrossEncoderVerifier.from_name(str(folder), device="cpu"),
        CrossEncoderVerifier.from_name(str(tmp_path / "small"), backend="onnx"),
    )
    orders = [sorted(PROBES, key=lambda p, judge=judge: judge.raw_scores(p[0], [p[1]])[0]) for judge in judges]
    assert orders[0] == orders[1]


def test_different_ranking_raises_and_writes_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "LEAST_AGREEMENT", 1.1)
    with pytest.raises(ModelError, match="ranks 3 probes differently"):
        quantize_onnx(folder, tmp_path / "small", PROBES)
    assert not (tmp_path / "small").exists()


@pytest.fixture(scope="module")
def fused(folder, tmp_path_factory):
    """Return the graph with fused operators, and a function that runs a graph."""
    place = export_onnx(folder, tmp_path_factory.mktemp("whole") / "model")
    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    graph = str(place / "onnx" / "model.onnx")
    result = optimize_model(graph, model_type="bert", num_heads=2, hidden_size=32, optimization_options=options)
    return result.model, place


def said(model, place, tmp_path):
    home = tmp_path / "changed"
    shutil.copytree(place, home, dirs_exist_ok=True)
    onnx.save(model, home / "onnx" / "model.onnx")
    return OnnxRuntime.from_folder(home).logits([PROBES])[0]


def test_last_layer_keeps_first_token_only(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    before = len(model.graph.node)
    assert keep_first_token(model)
    assert len(model.graph.node) == before + 1
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=1e-5)


def test_head_using_more_tokens_keeps_all(fused):
    model = copy.deepcopy(fused[0])
    last = [n for n in model.graph.node if n.op_type == "SkipLayerNormalization"][-1]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.output[0], onnx.TensorProto.FLOAT, None))
    whole = copy.deepcopy(model)
    assert not keep_first_token(model)
    assert model == whole


def test_large_token_does_not_set_quantisation_step(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    scale_tokens(model)
    products = [n for n in model.graph.node if n.op_type == "MatMul"]
    assert products
    assert all(n.input[0].endswith("_scaled") for n in products)
    for tokens in watched(model, {n.input[0] for n in products}, place):
        np.testing.assert_allclose(np.abs(tokens).max(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=1e-4)


def test_splitting_outliers_changes_no_score(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    product = next(n for n in model.graph.node if n.op_type == "MatMul" and "intermediate" in n.name)
    norm = next(n for n in model.graph.node if product.input[0] in n.output)
    assert norm.op_type == "SkipLayerNormalization"
    norm.input[2] = "loud"
    loud = np.array([1.0] * 5 + [30.0] + [1.0] * 26, np.float32)
    model.graph.initializer.append(numpy_helper.from_array(loud, "loud"))
    before = said(model, place, tmp_path)
    split_outliers(model, [OnnxRuntime.from_folder(place).build_inputs([pair]) for pair in PROBES])
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=2e-3)
    for tokens in watched(model, {product.input[0]}, place):
        silent = np.flatnonzero(np.abs(tokens).reshape(-1, 32).max(axis=0) == 0)
        assert 5 in silent
        assert len(silent) == APART


def test_each_word_vector_has_its_own_scale(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    node = next(n for n in model.graph.node if n.op_type == "EmbedLayerNormalization")
    table = next(c for c in model.graph.initializer if c.name == node.input[2])
    rows = numpy_helper.to_array(table).copy()
    rows[-1] *= 1000
    table.CopyFrom(numpy_helper.from_array(rows, table.name))
    before = said(model, place, tmp_path)
    quantize_embeddings(model)
    assert table.data_type == onnx.TensorProto.INT8
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=0.15)  # random weights are wild


def related_inputs(seed):
    """Return activations whose channels depend on one another, and weights for them."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(2_000, 8)) @ rng.normal(size=(8, 48)) + 0.1 * rng.normal(size=(2_000, 48))
    return inputs, rng.normal(size=(48, 16)).astype(np.float32)


def round_to_nearest(weights):
    step = np.maximum(np.abs(weights).max(axis=0), 1e-9) / STEPS
    return np.round(weights / step) * step


@pytest.mark.parametrize("seed", range(3))
def test_rounded_matrix_errs_less_than_the_nearest_weights(seed):
    inputs, weights = related_inputs(seed)
    rounded = round_matrix(weights, inputs[:1_000].T @ inputs[:1_000])
    errors = [np.square(inputs[1_000:] @ (each - weights)).mean() for each in (rounded, round_to_nearest(weights))]
    assert errors[0] < 0.5 * errors[1]
    np.testing.assert_allclose(round_to_nearest(rounded), rounded, atol=1e-6)
    assert np.abs(rounded - weights).max() < 0.1 * np.abs(weights).max()


def test_channels_without_activations_and_zero_columns_are_rounded_too():
    inputs, weights = related_inputs(0)
    inputs[:, 3] = 0
    weights[:, 2] = 0
    rounded = round_matrix(weights, inputs.T @ inputs)
    np.testing.assert_allclose(rounded[3], round_to_nearest(weights)[3], atol=1e-6)
    assert not rounded[:, 2].any()
    silent = round_matrix(weights, np.zeros((48, 48)))
    np.testing.assert_allclose(silent, round_to_nearest(weights), atol=1e-6)


def test_samples_decide_the_rounding_of_every_product(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    samples = [OnnxRuntime.from_folder(place).build_inputs([pair]) for pair in PROBES]
    names = [n.input[1] for n in model.graph.node if n.op_type == "MatMul"]
    round_weights(model, samples)
    stored, whole = ({c.name: numpy_helper.to_array(c) for c in each.graph.initializer} for each in (model, fused[0]))
    for name in names:
        np.testing.assert_allclose(round_to_nearest(stored[name]), stored[name], atol=1e-6)
        assert np.abs(stored[name] - round_to_nearest(whole[name])).max() > 1e-4, name
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=0.15)


def test_written_weights_are_rounded_by_the_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "LEAST_AGREEMENT", -1.0)  # random weights rank by chance
    model = save_tiny_model(tmp_path / "whole")
    noise = np.random.default_rng(1)
    whole = {
        name: (values + noise.normal(0, 0.02, values.shape)).astype(np.float32)
        for name, values in load_file(model / "model.safetensors").items()
    }
    save_file(whole, model / "model.safetensors", metadata={"format": "pt"})
    quantize_onnx(model, tmp_path / "small", samples=PROBES)
    stored = load_file(dequantize_onnx(tmp_path / "small", tmp_path / "back") / "model.safetensors")
    name = next(name for name in whole if name.endswith("intermediate.dense.weight"))
    step = np.abs(whole[name]).max(axis=1, keepdims=True) / STEPS
    assert (np.abs(stored[name] - whole[name]) / step).max() > 0.6  # to the nearest step it would be at most 0.5


def watched(model, names, place):
    """Return these activations of the graph for the probes."""
    shown = copy.deepcopy(model)
    shown.graph.output.extend(helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in sorted(names))
    session = onnxruntime.InferenceSession(shown.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(sorted(names), OnnxRuntime.from_folder(place).build_inputs(PROBES))


def test_missing_model_error_names_it(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        quantize_onnx(tmp_path / "nowhere", tmp_path / "small")


def test_zero_token_causes_no_division_by_zero(fused, tmp_path):
    model, place = copy.deepcopy(fused[0]), fused[1]
    norm = next(n for n in model.graph.node if n.op_type == "SkipLayerNormalization")
    for name in norm.input[2:4]:
        weight = next(c for c in model.graph.initializer if c.name == name)
        weight.CopyFrom(numpy_helper.from_array(np.zeros_like(numpy_helper.to_array(weight)), name))
    before = said(model, place, tmp_path)
    scale_tokens(model)
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=1e-4)


def test_nan_output_raises(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "_agreement", lambda *_: float("nan"))
    with pytest.raises(ModelError, match="ranks 3 probes differently"):
        quantize_onnx(folder, tmp_path / "small", PROBES)
    assert not (tmp_path / "small").exists()


def test_graph_is_run_before_writing_without_probes(folder, tmp_path, monkeypatch):
    def silenced(model):
        for each in model.graph.initializer:
            if len(each.dims) == 1:
                each.CopyFrom(numpy_helper.from_array(np.full(each.dims[0], np.nan, np.float32), each.name))

    monkeypatch.setattr(onnx_quantize, "keep_first_token", silenced)
    with pytest.raises(ModelError, match="the quantised graph returned NaN or infinity for 1 of 1 pairs"):
        quantize_onnx(folder, tmp_path / "small")
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("opset", [14, 18])
def test_other_opsets_are_converted(folder, tmp_path, monkeypatch, opset):
    monkeypatch.setattr(onnx_export, "OPSET", opset)
    place = export_onnx(folder, tmp_path / "whole")
    assert onnx.load(place / "onnx" / "model.onnx").opset_import[0].version == opset
    assert quantize_onnx(place, tmp_path / "small", PROBES) >= onnx_quantize.LEAST_AGREEMENT


def test_other_architecture_raises(fused, tmp_path):
    place = shutil.copytree(fused[1], tmp_path / "whole")
    said = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**said, "num_attention_heads": None, "model_type": "distilbert"}))
    with pytest.raises(ModelError, match=r"lacks num_attention_heads .*distilbert"):
        quantize_onnx(place, tmp_path / "small")


def test_too_long_samples_raise(folder, tmp_path):
    with pytest.raises(ModelError, match="none of 1 samples fits"):
        quantize_onnx(folder, tmp_path / "small", samples=[("what", "moon " * 2_000)])


def test_sample_that_is_too_long_is_passed_over(folder, tmp_path):
    assert quantize_onnx(folder, tmp_path / "small", samples=[*PROBES, ("what", "moon " * 2_000)]) > 0
