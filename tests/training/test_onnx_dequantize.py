"""Test the way back from a quantised graph to weights for torch."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper
from safetensors.numpy import load_file, save_file

from meve.components.embedders.onnx import MINILM_FOLDER
from meve.components.verifiers._onnx_dequantize import _read_weights
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ModelError
from meve.testing.tiny_models import save_tiny_model
from meve.training.onnx_dequantize import dequantize_onnx
from meve.training.onnx_quantize import quantize_onnx

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

QUESTION = "When do tomatoes need water?"
PASSAGES = ["Water tomatoes in the morning.", "Tomatoes are red.", "The bus leaves at nine.", "Water boils at 100 °C."]


def test_shipped_verifier_scores_alike_in_torch(tmp_path: Path) -> None:
    folder = dequantize_onnx(VERIFIER_FOLDER, tmp_path / "torch")
    in_torch = CrossEncoderVerifier.from_name(str(folder), device="cpu").score(QUESTION, PASSAGES)
    np.testing.assert_allclose(in_torch, load_shipped_verifier().score(QUESTION, PASSAGES), atol=0.01)


def test_quantised_model_comes_back_without_outlier_channels_too(tmp_path: Path) -> None:
    whole = save_tiny_model(tmp_path / "whole")
    weights = load_file(whole / "model.safetensors")  # a new model's are equal in places, and stored once in a graph
    noise = np.random.default_rng(1)
    different = {name: (w + noise.normal(0, 0.02, w.shape)).astype(np.float32) for name, w in weights.items()}
    save_file(different, whole / "model.safetensors", metadata={"format": "pt"})
    quantize_onnx(whole, tmp_path / "small")
    back = load_file(dequantize_onnx(tmp_path / "small", tmp_path / "back") / "model.safetensors")
    assert back.keys() == different.keys()
    for name, values in different.items():
        np.testing.assert_allclose(back[name], values, atol=0.01, err_msg=name)


def test_biases_of_more_than_ten_layers_keep_their_order() -> None:
    """By name, layer 10 comes before layer 2."""
    attention = "bert.encoder.layer.{}.attention.self"
    nodes, constants = [], []
    for n in range(11):
        module = attention.format(n).replace(".", "/")
        for part in ("query", "key", "value"):
            weight = f"{n}-{part}"
            nodes.append(
                helper.make_node(
                    "MatMulInteger", ["x", f"{weight}_quantized", "z", f"{weight}_zero_point"], [weight],
                    name=f"/model/{module}/{part}/MatMul_quant",
                )
            )  # fmt: skip
            constants += [
                numpy_helper.from_array(np.ones((3, 3), np.int8), f"{weight}_quantized"),
                numpy_helper.from_array(np.zeros(3, np.int8), f"{weight}_zero_point"),
                numpy_helper.from_array(np.ones(3, np.float32), f"{weight}_scale"),
            ]
        nodes.append(helper.make_node("MultiHeadAttention", ["q", "k", "v", f"bias-{n}"], [f"a{n}"]))
        constants.append(numpy_helper.from_array(np.full(9, n, np.float32), f"bias-{n}"))
    weights = _read_weights(helper.make_graph(nodes, "g", [], [], constants))
    for n in range(11):
        assert set(weights[f"{attention.format(n)}.query.bias"].tolist()) == {float(n)}


def test_embedder_is_no_cross_encoder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="must hold a graph that quantize_onnx wrote from a BERT classifier"):
        dequantize_onnx(MINILM_FOLDER, tmp_path / "never")


def test_graph_that_is_not_quantised_raises(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    (folder / "onnx").mkdir(parents=True)
    shutil.copy2(VERIFIER_FOLDER / "config.json", folder)
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="dequantising"):
        dequantize_onnx(folder, tmp_path / "never")
    assert not (tmp_path / "never").exists()
