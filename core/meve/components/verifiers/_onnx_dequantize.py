"""Turns a graph that `quantize_onnx` wrote back into weights in fp32, for torch, a GPU or further training."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.verifiers._onnx_runtime import TOKEN_HEAD
from meve.components.verifiers._sentence_scores import TokenHead
from meve.errors import ModelError, missing_extra, wrap_errors
from meve.types import FloatArray

_PRODUCT = re.compile(r"/model/(?P<module>.+)/MatMul_quant")
_HEAD = re.compile(r"/model/(?P<module>.+)/Gemm_MatMul")
_ATTENTION = re.compile(r"(?P<layer>bert\.encoder\.layer\.\d+\.attention\.self)\.query\.weight")


def dequantize_onnx(folder: str | Path, to: str | Path) -> Path:
    """Write model.safetensors from a quantised cross-encoder's graph, with config, tokenizer and calibration beside it.

    The weights are those that the graph computes with, so scores differ only by the rounding of activations.

    Args:
        folder: a folder that `quantize_onnx` wrote, such as the bundled verifier's.
        to: the output folder, created if missing; `CrossEncoderVerifier.from_name` reads it with `backend="torch"`.

    Returns:
        `to`.

    Raises:
        MissingExtraError: onnx or safetensors isn't installed.
        ModelError: the graph isn't one that `quantize_onnx` wrote from a BERT with a classifier.
    """
    try:
        import onnx
        from safetensors.numpy import save_file
    except ImportError as cause:
        raise missing_extra(str(cause.name), "onnx", "dequantising a model") from cause
    source, target = Path(folder), Path(to)
    with wrap_errors(ModelError, f"dequantising {source}"):
        weights = _read_weights(onnx.load(str(source / "onnx" / "model.onnx")).graph)
        layers = json.loads((source / "config.json").read_text("utf-8"))["num_hidden_layers"]
    expected = 16 * layers + 5 + 4  # of each layer, of the embeddings, of pooler and classifier
    if len(weights) != expected:
        raise ModelError(
            f"{source} must hold a graph that quantize_onnx wrote from a BERT classifier, of {expected} weights, "
            f"got {len(weights)}: {', '.join(sorted(weights)[:5])}, …"
        )
    target.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(values) for name, values in weights.items()}, target / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "calibration.json"):
        if (source / file).is_file():
            shutil.copy2(source / file, target / file)
    return target


def read_token_head(folder: str | Path) -> TokenHead | None:
    """Return what computes the logits per token in a graph that `meve.training.token_head` extended; None for others.

    Raises:
        MissingExtraError: onnx isn't installed.
        ModelError: the graph can't be read.
    """
    try:
        import onnx
    except ImportError as cause:
        raise missing_extra("onnx", "onnx", "reading a graph") from cause
    with wrap_errors(ModelError, f"reading the graph of {folder}"):
        graph = onnx.load(str(Path(folder) / "onnx" / "model.onnx")).graph
        stored = {
            each.name.removeprefix(f"{TOKEN_HEAD}_"): onnx.numpy_helper.to_array(each)
            for each in graph.initializer
            if each.name.startswith(TOKEN_HEAD)
        }
    if not stored:
        return None
    weights = {int(name.rpartition("_")[2]): v[:, 0] for name, v in stored.items() if name.startswith("weight_")}
    return TokenHead(weights=weights, relevance=float(stored["relevance"][0]), bias=float(stored["bias"][0]))


def _read_weights(graph: Any) -> dict[str, FloatArray]:  # noqa: ANN401 - an onnx.GraphProto
    """Return a BERT's weights by the names that transformers gives them."""
    from onnx import numpy_helper

    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    weights: dict[str, FloatArray] = {
        name.removeprefix("model."): values.astype(np.float32)
        for name, values in stored.items()
        if name.startswith("model.") and not name.endswith("_scale")
    }
    for name in list(weights):
        if f"model.{name}_scale" in stored:  # embeddings: each row has its scale
            weights[name] = weights[name] * stored[f"model.{name}_scale"]
    attention_biases: list[FloatArray] = []
    for node in graph.node:
        if product := _PRODUCT.fullmatch(node.name):
            module = product["module"].replace("/", ".")
            weights[f"{module}.weight"] = _dequantize(node, stored).T
        elif head := _HEAD.fullmatch(node.name):  # exported transposed, under the torch name
            module = head["module"].replace("/", ".")
            weights[f"{module}.weight"] = weights[f"{module}.weight"].T
        elif node.op_type == "MultiHeadAttention":
            attention_biases.append(stored[node.input[3]])
    layers = {found["layer"] for name in weights if (found := _ATTENTION.fullmatch(name))}
    ordered = sorted(layers, key=lambda layer: int(layer.split(".")[3]))
    for layer, bias in zip(ordered, attention_biases, strict=False):
        for part, values in zip(("query", "key", "value"), np.split(bias, 3), strict=True):
            weights[f"{layer}.{part}.bias"] = values
    return weights


def _dequantize(node: Any, stored: dict[str, Any]) -> FloatArray:  # noqa: ANN401 - an onnx.NodeProto
    """Return the weights of a product, shape (inputs, outputs), with the channels that were kept in fp32."""
    weight = node.input[1].removesuffix("_quantized")
    quantized = stored[node.input[1]].astype(np.float32) - stored[node.input[3]].astype(np.float32)
    values = quantized * stored[f"{weight}_scale"]
    kept = stored.get(f"{weight}_few")
    if kept is not None:
        values[~values.any(axis=1)] = kept
    return np.asarray(values, dtype=np.float32)
