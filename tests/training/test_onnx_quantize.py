"""A quantised graph: smaller, ordering as the whole one does, and refused where it doesn't."""

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

from meve.components.verifiers import _onnx_export as onnx_export
from meve.components.verifiers import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ModelError, ModelNotFoundError
from meve.testing.models import tiny_model
from meve.training import onnx_quantize
from meve.training.onnx_graph import APART, embeddings_by_row, first_token_only, outliers_apart, tokens_by_scale
from meve.training.onnx_quantize import quantize_onnx

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROBES = [("what orbits the earth", "the moon"), ("what is bread", "the cat is bread"), ("a", "moon moon the harbour")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def test_it_is_smaller_and_orders_as_the_whole_model_does(folder, tmp_path):
    """Random weights are too wild for nearness; a trained model's scores are held against it where it is made."""
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


def test_one_that_orders_otherwise_is_refused_and_nothing_written(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "LEAST_AGREEMENT", 1.1)
    with pytest.raises(ModelError, match="orders 3 probes otherwise"):
        quantize_onnx(folder, tmp_path / "small", PROBES)
    assert not (tmp_path / "small").exists()


@pytest.fixture(scope="module")
def fused(folder, tmp_path_factory):
    """The graph with its operators fused, and what runs a graph beside the same tokenizer."""
    place = export_onnx(folder, tmp_path_factory.mktemp("whole") / "model")
    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    graph = str(place / "onnx" / "model.onnx")
    made = optimize_model(graph, model_type="bert", num_heads=2, hidden_size=32, optimization_options=options)
    return made.model, place


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
    assert len(model.graph.node) == before + 1
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=1e-5)


def test_where_the_head_takes_more_nothing_is_left_out(fused):
    """Here another output asks for every token."""
    model = copy.deepcopy(fused[0])
    last = [n for n in model.graph.node if n.op_type == "SkipLayerNormalization"][-1]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.output[0], onnx.TensorProto.FLOAT, None))
    whole = copy.deepcopy(model)
    assert not first_token_only(model)
    assert model == whole


def test_a_token_of_large_activations_does_not_set_the_step_for_all_others(fused, tmp_path):
    """Each is divided by its own largest before every product; the scores stay, padding and all."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    tokens_by_scale(model)
    products = [n for n in model.graph.node if n.op_type == "MatMul"]
    assert products
    assert all(n.input[0].endswith("_scaled") for n in products)
    for tokens in watched(model, {n.input[0] for n in products}, place):
        np.testing.assert_allclose(np.abs(tokens).max(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(said(model, place, tmp_path), said(fused[0], place, tmp_path), atol=1e-4)


def test_the_loudest_channels_stand_apart_and_no_score_changes(fused, tmp_path):
    """One channel that is thirty times as large as the others isn't among those that are quantised together."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    product = next(n for n in model.graph.node if n.op_type == "MatMul" and "intermediate" in n.name)
    norm = next(n for n in model.graph.node if product.input[0] in n.output)
    assert norm.op_type == "SkipLayerNormalization"
    norm.input[2] = "loud"
    loud = np.array([1.0] * 5 + [30.0] + [1.0] * 26, np.float32)
    model.graph.initializer.append(numpy_helper.from_array(loud, "loud"))
    before = said(model, place, tmp_path)
    outliers_apart(model, [OnnxRuntime.from_folder(place).feed([pair]) for pair in PROBES])
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=2e-3)
    for tokens in watched(model, {product.input[0]}, place):
        silent = np.flatnonzero(np.abs(tokens).reshape(-1, 32).max(axis=0) == 0)
        assert 5 in silent
        assert len(silent) == APART


def test_the_vectors_of_words_keep_a_scale_each(fused, tmp_path):
    """A word whose vector is a thousand times as large as the others' costs them none of their eight bits."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    node = next(n for n in model.graph.node if n.op_type == "EmbedLayerNormalization")
    table = next(c for c in model.graph.initializer if c.name == node.input[2])
    rows = numpy_helper.to_array(table).copy()
    rows[-1] *= 1000
    table.CopyFrom(numpy_helper.from_array(rows, table.name))
    before = said(model, place, tmp_path)
    embeddings_by_row(model)
    assert table.data_type == onnx.TensorProto.INT8
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=0.15)  # random weights are wild


def watched(model, names, place):
    """These activations, as the graph makes them of the probes."""
    shown = copy.deepcopy(model)
    shown.graph.output.extend(helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in sorted(names))
    session = onnxruntime.InferenceSession(shown.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(sorted(names), OnnxRuntime.from_folder(place).feed(PROBES))


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        quantize_onnx(tmp_path / "nowhere", tmp_path / "small")


def test_a_token_of_zeros_is_no_division_by_zero(fused, tmp_path):
    """A layer may be silent."""
    model, place = copy.deepcopy(fused[0]), fused[1]
    norm = next(n for n in model.graph.node if n.op_type == "SkipLayerNormalization")
    for name in norm.input[2:4]:
        weight = next(c for c in model.graph.initializer if c.name == name)
        weight.CopyFrom(numpy_helper.from_array(np.zeros_like(numpy_helper.to_array(weight)), name))
    before = said(model, place, tmp_path)
    tokens_by_scale(model)
    np.testing.assert_allclose(said(model, place, tmp_path), before, atol=1e-4)


def test_what_says_no_number_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_quantize, "_agreement", lambda *_: float("nan"))
    with pytest.raises(ModelError, match="orders 3 probes otherwise"):
        quantize_onnx(folder, tmp_path / "small", PROBES)
    assert not (tmp_path / "small").exists()


def test_without_probes_the_small_graph_is_run_before_it_is_written(folder, tmp_path, monkeypatch):
    def silenced(model):
        for each in model.graph.initializer:
            if len(each.dims) == 1:
                each.CopyFrom(numpy_helper.from_array(np.full(each.dims[0], np.nan, np.float32), each.name))

    monkeypatch.setattr(onnx_quantize, "first_token_only", silenced)
    with pytest.raises(ModelError, match="no number for 1 of 1 pairs"):
        quantize_onnx(folder, tmp_path / "small")
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("opset", [14, 18])
def test_graphs_in_an_older_or_newer_dialect_are_converted(folder, tmp_path, monkeypatch, opset):
    monkeypatch.setattr(onnx_export, "OPSET", opset)
    place = export_onnx(folder, tmp_path / "whole")
    assert onnx.load(place / "onnx" / "model.onnx").opset_import[0].version == opset
    assert quantize_onnx(place, tmp_path / "small", PROBES) >= onnx_quantize.LEAST_AGREEMENT


def test_a_model_of_another_plan_is_told_apart(fused, tmp_path):
    place = shutil.copytree(fused[1], tmp_path / "whole")
    said = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**said, "num_attention_heads": None, "model_type": "distilbert"}))
    with pytest.raises(ModelError, match=r"says no num_attention_heads .*distilbert"):
        quantize_onnx(place, tmp_path / "small")


def test_samples_that_are_all_too_long_are_said_to_be(folder, tmp_path):
    with pytest.raises(ModelError, match="none of 1 samples fits"):
        quantize_onnx(folder, tmp_path / "small", samples=[("what", "moon " * 2_000)])
