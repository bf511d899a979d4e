"""Adds a second output to a quantised cross-encoder: a logit per token, whose mean over a sentence rates the sentence.

The weights of the model stay as they are, so its relevance logit doesn't change. The idea to read relevance and
sentences in one pass is Provence's (Chirkova et al. 2025).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.verifiers._onnx_runtime import TOKEN_HEAD, TOKEN_LOGITS
from meve.errors import ModelError, missing_extra, wrap_errors
from meve.types import FloatArray


def add_token_head(
    graph: Path, to: Path, *, weights: Mapping[int, FloatArray], relevance: float = 0.0, bias: float = 0.0
) -> None:
    """Write a graph with the further output `token_logits`, shape (n, tokens).

    A token's logit is Σ hidden_state·weights + relevance·logit + bias, where `logit` is that of the pair.

    A head that the graph has already is replaced.

    Args:
        graph: a graph that `quantize_onnx` wrote.
        to: the file to write; may be the same one.
        weights: by layer, from 1 to `len(hidden_states(model))`, one weight per unit of its hidden state.
        relevance: the weight of the pair's logit.
        bias: added to every token's logit.

    Raises:
        MissingExtraError: onnx isn't installed.
        ModelError: the graph has no such layer, or another number of units.
    """
    onnx = _import_onnx()
    with wrap_errors(ModelError, f"loading {graph}"):
        model = onnx.load(str(graph))
    remove_token_head(model)
    layers = hidden_states(model)
    units = next((c.dims[0] for c in model.graph.initializer if c.name.endswith("LayerNorm.bias")), 0)
    shapes = {layer: each.shape for layer, each in weights.items()}
    if not shapes or not set(shapes) <= set(range(1, len(layers) + 1)) or set(shapes.values()) != {(units,)}:
        raise ModelError(
            f"weights must hold arrays of shape ({units},) by layers from 1 to {len(layers)} of {graph}, got {shapes}"
        )
    parts = []
    for layer, values in sorted(weights.items()):
        constant, product = f"{TOKEN_HEAD}_weight_{layer}", f"{TOKEN_HEAD}_{layer}"
        column = np.asarray(values, dtype=np.float32).reshape(-1, 1)
        model.graph.initializer.append(onnx.numpy_helper.from_array(column, constant))
        _append(model, "MatMul", [layers[layer - 1], constant], product)
        parts.append(product)
    numbers = {"relevance": np.array([relevance], np.float32), "bias": np.array([bias], np.float32)}
    for name, value in {**numbers, "axis": np.array([2], np.int64)}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, f"{TOKEN_HEAD}_{name}"))
    _append(model, "Sum", [*parts, f"{TOKEN_HEAD}_bias"], f"{TOKEN_HEAD}_sum")
    _append(model, "Squeeze", [f"{TOKEN_HEAD}_sum", f"{TOKEN_HEAD}_axis"], f"{TOKEN_HEAD}_tokens")
    _append(model, "Mul", [model.graph.output[0].name, f"{TOKEN_HEAD}_relevance"], f"{TOKEN_HEAD}_pair")
    _append(model, "Add", [f"{TOKEN_HEAD}_tokens", f"{TOKEN_HEAD}_pair"], TOKEN_LOGITS)
    shape = ["batch", "tokens"]
    model.graph.output.append(onnx.helper.make_tensor_value_info(TOKEN_LOGITS, onnx.TensorProto.FLOAT, shape))
    written = to.with_name(f"{to.name}.new")
    onnx.save(model, str(written))
    os.replace(written, to)


def remove_token_head(model: Any) -> None:  # noqa: ANN401 - an onnx.ModelProto
    """Remove the output `token_logits`, if there is one, with all that only it needs."""
    _remove(model.graph.output, [each.name for each in model.graph.output])
    _remove(model.graph.node, [each.output[0] for each in model.graph.node])
    _remove(model.graph.initializer, [each.name for each in model.graph.initializer])


def hidden_states(model: Any) -> list[str]:  # noqa: ANN401
    """Return the names of the layers' hidden states, shape (n, tokens, units), from the first layer on.

    The last layer is left out: `quantize_onnx` lets it compute the first token alone.
    """
    normed = [node.output[0] for node in model.graph.node if node.op_type == "SkipLayerNormalization"]
    return normed[2:-1:2]  # after the embeddings, each layer has two: after its attention, and at its end


def _remove(entries: Any, names: list[str]) -> None:  # noqa: ANN401
    for n in reversed(range(len(names))):
        if names[n] == TOKEN_LOGITS or names[n].startswith(TOKEN_HEAD):
            del entries[n]


def _append(model: Any, kind: str, inputs: list[str], output: str) -> None:  # noqa: ANN401
    model.graph.node.append(_import_onnx().helper.make_node(kind, inputs, [output], name=output))


def _import_onnx() -> Any:  # noqa: ANN401
    try:
        import onnx
    except ImportError as cause:
        raise missing_extra("onnx", "onnx", "adding an output to a graph") from cause
    return onnx
