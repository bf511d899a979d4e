"""Changes to the graph of a fused BERT that leave what it says as it is, and make it quicker, or easier to quantise."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meve.types import FloatArray

SMOOTHING = 0.8
"""α: how much of the spread of activations goes over to the weights; of 0.5 to 1.0, the one that kept ranks best."""

_FLOOR = 1e-5


def first_token_only(model: Any) -> bool:  # noqa: ANN401 - an onnx.ModelProto
    """Have the last layer read on for the first token alone, where nothing but that one is asked of it.

    What follows the last attention works token by token, and the head takes the first: so all others are left out.

    Returns:
        Whether there was something to leave out.
    """
    from onnx import TensorProto, helper

    graph = model.graph
    nodes = list(graph.node)
    attention = [n for n, node in enumerate(nodes) if node.op_type == "Attention"]
    if not attention or not _reads_first_token(graph, nodes[attention[-1] + 1 :]):
        return False
    at = attention[-1]
    cut = (nodes[at].output[0], nodes[at].input[0])
    graph.initializer.append(helper.make_tensor("meve_first_token", TensorProto.INT64, [1], [0]))
    for node in nodes[at + 1 :]:
        for place, name in enumerate(node.input):
            if name in cut:
                node.input[place] = f"{name}_first"
    nodes[at + 1 : at + 1] = [
        helper.make_node("Gather", [name, "meve_first_token"], [f"{name}_first"], name=f"{name}_first", axis=1)
        for name in cut
    ]
    _replace_nodes(graph, nodes)
    return True


def _reads_first_token(graph: Any, rest: Sequence[Any]) -> bool:  # noqa: ANN401
    """Whether what follows the last attention goes token by token into one node that takes the first, and nowhere."""
    from onnx import numpy_helper

    constants = {c.name: numpy_helper.to_array(c) for c in graph.initializer}
    by_token = ("MatMul", "SkipLayerNormalization", "BiasGelu", "Gelu", "Add")
    taken = [n for n, node in enumerate(rest) if node.op_type == "Gather"]
    if len(taken) != 1 or not all(node.op_type in by_token for node in rest[: taken[0]]):
        return False
    gather = rest[taken[0]]
    axis = next((a.i for a in gather.attribute if a.name == "axis"), 0)
    index = constants.get(gather.input[1])
    inner = {name for node in rest[: taken[0]] for name in node.output}
    outside = {name for node in rest[taken[0] + 1 :] for name in node.input} | {o.name for o in graph.output}
    return axis == 1 and index is not None and not np.any(index) and not inner & outside


def smoothed(model: Any, samples: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401
    """Divide what goes into each product by how large it gets, channel by channel, and multiply the weights by that.

    What comes out is the same. But a few channels of activations no longer set the step for all of them when they are
    quantised together.

    Args:
        model: an onnx.ModelProto, changed in place.
        samples: what the graph is fed, to see how large activations get.

    Source: Xiao et al., SmoothQuant (2023), eq. 4.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    weights = {c.name: c for c in graph.initializer}
    used = Counter(name for node in graph.node for name in node.input)
    products = [n for n in graph.node if n.op_type in ("MatMul", "Attention") and n.input[1] in weights]
    chosen = [n for n in products if used[n.input[1]] == 1]  # weights that layers share have one scale only
    largest = _largest(model, sorted({node.input[0] for node in chosen}), samples)
    nodes = []
    for node in graph.node:
        if any(node is each for each in chosen):
            weight = weights[node.input[1]]
            values = numpy_helper.to_array(weight)
            there = np.maximum(np.abs(values).max(axis=1), _FLOOR)
            scale = np.maximum(largest[node.input[0]], _FLOOR) ** SMOOTHING / there ** (1 - SMOOTHING)
            scale = (scale / np.exp(np.log(scale).mean())).astype(np.float32)
            weight.CopyFrom(numpy_helper.from_array((values * scale[:, None]).astype(np.float32), weight.name))
            name = f"{node.input[1]}_smoothing"
            graph.initializer.append(numpy_helper.from_array((1 / scale).astype(np.float32), name))
            nodes.append(helper.make_node("Mul", [node.input[0], name], [f"{name}_applied"], name=f"{name}_applied"))
            node.input[0] = f"{name}_applied"
        nodes.append(node)
    _replace_nodes(graph, nodes)


def _largest(model: Any, names: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> dict[str, FloatArray]:  # noqa: ANN401
    """The largest magnitude of each channel of these activations, over all samples and tokens."""
    import onnxruntime
    from onnx import ModelProto, TensorProto, helper

    watched = ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    found: dict[str, FloatArray] = {}
    for sample in samples:
        for name, values in zip(names, session.run(list(names), dict(sample)), strict=True):
            top = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            found[name] = np.maximum(found[name], top) if name in found else top
    return found


def _replace_nodes(graph: Any, nodes: Sequence[Any]) -> None:  # noqa: ANN401
    kept = list(nodes)
    del graph.node[:]
    graph.node.extend(kept)
