"""Transforms the graph of a fused BERT without changing its output, to make it faster or easier to quantise."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from meve.components._onnx_telemetry import disable_telemetry
from meve.types import FloatArray

APART = 4
"""Input channels of each matrix product that stay in fp32: those with the largest activations."""
EXACT = "exact_"
"""The name prefix of nodes that must not be quantised."""

_ATTENTION = "MultiHeadAttention"


def keep_first_token(model: Any) -> bool:  # noqa: ANN401 - an onnx.ModelProto
    """Compute the last layer for the first token alone, if the head uses no other token.

    The last attention needs only the first token's query, and what follows works token by token up to the head. So all
    other tokens are left out.

    Returns:
        Whether the graph was changed.
    """
    from onnx import TensorProto, helper

    graph = model.graph
    nodes = list(graph.node)
    attention = [n for n, node in enumerate(nodes) if node.op_type == _ATTENTION]
    if not attention or not _reads_first_token(graph, nodes[attention[-1] + 1 :]):
        return False
    at = attention[-1]
    query = next(node for node in nodes if node.output[0] == nodes[at].input[0])
    read = query.input[0]
    graph.initializer.append(helper.make_tensor("meve_first_token", TensorProto.INT64, [1], [0]))
    for node in (query, *nodes[at + 1 :]):
        for place, name in enumerate(node.input):
            if name == read:
                node.input[place] = f"{read}_first"
    gather = helper.make_node("Gather", [read, "meve_first_token"], [f"{read}_first"], name=f"{EXACT}first", axis=1)
    nodes.insert(next(n for n, node in enumerate(nodes) if node is query), gather)
    _replace_nodes(graph, nodes)
    return True


def _reads_first_token(graph: Any, rest: Sequence[Any]) -> bool:  # noqa: ANN401
    """Return whether all nodes after the last attention work per token and feed one node that takes the first."""
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


def quantize_embeddings(model: Any) -> None:  # noqa: ANN401
    """Store the vectors of words and positions in eight bits, each with its own scale, and sum them in fp32.

    One scale for all would be set by the largest vector, and most are small.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph, nodes = model.graph, []
    stored = {c.name: c for c in graph.initializer}
    for node in graph.node:
        if node.op_type != "EmbedLayerNormalization" or len(node.input) < 8:
            nodes.append(node)
            continue
        words, kinds, word, position, kind, gamma, beta, mask = node.input[:8]
        for name, constant in (("zero", np.int64(0)), ("one", np.int64(1)), ("second_axis", np.array([1]))):
            graph.initializer.append(numpy_helper.from_array(np.asarray(constant, np.int64), f"meve_{name}"))
        nodes += [
            _node("Shape", [words], "meve_length", start=1, end=2),
            _node("Squeeze", ["meve_length"], "meve_tokens"),
            _node("Range", ["meve_zero", "meve_tokens", "meve_one"], "meve_places"),
        ]
        for table, rows in ((word, words), (position, "meve_places")):
            values = numpy_helper.to_array(stored[table])
            scale = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, 1e-12).astype(np.float32)
            stored[table].CopyFrom(numpy_helper.from_array(np.round(values / scale).astype(np.int8), table))
            graph.initializer.append(numpy_helper.from_array(scale, f"{table}_scale"))
            gathered, scales, cast = (f"{EXACT}{table}{end}" for end in ("_rows", "_scales", "_cast"))
            nodes += [
                _node("Gather", [table, rows], gathered),
                _node("Gather", [f"{table}_scale", rows], scales),
                _node("Cast", [gathered], cast, to=TensorProto.FLOAT),
                _node("Mul", [cast, scales], f"{EXACT}{table}"),
            ]
        epsilon = next(a.f for a in node.attribute if a.name == "epsilon")
        normed = [f"{EXACT}{word}", "meve_rest", gamma, beta]
        nodes += [
            helper.make_node("Gather", [kind, kinds], ["meve_kinds"], name=f"{EXACT}kinds"),
            _node("Add", ["meve_kinds", f"{EXACT}{position}"], "meve_rest"),
            helper.make_node(
                "SkipLayerNormalization", normed, [node.output[0]], "meve_normed", domain="com.microsoft",
                epsilon=epsilon,
            ),
            helper.make_node("ReduceSum", [mask, "meve_second_axis"], [node.output[1]], "meve_lengths", keepdims=0),
        ]  # fmt: skip
    _replace_nodes(graph, nodes)


def split_outliers(model: Any, samples: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401
    """Split each matrix product in two: the few channels with the largest activations in fp32, and the rest.

    The sum is unchanged, but the few no longer set the quantisation step of the rest.

    Args:
        model: an onnx.ModelProto, changed in place.
        samples: inputs of the graph, to measure the activations.

    Source: Dettmers et al., LLM.int8() (2022), section 3.2, with channels chosen ahead.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    largest = _measure_activations(model, sorted({node.input[0] for node in list_products(graph)}), samples)
    stored = {c.name: c for c in graph.initializer}
    parted: set[str] = set()

    def split_product(node: Any) -> list[Any]:  # noqa: ANN401
        input_name, output_name, weight = node.input[0], node.output[0], stored[node.input[1]]
        values = numpy_helper.to_array(weight).astype(np.float32)
        few = np.sort(np.argsort(-largest[input_name])[:APART])
        before = []
        if input_name not in parted:
            parted.add(input_name)
            rest = np.ones(len(values), np.float32)
            rest[few] = 0
            graph.initializer.append(numpy_helper.from_array(rest, f"{input_name}_is_rest"))
            graph.initializer.append(numpy_helper.from_array(few.astype(np.int64), f"{input_name}_are_few"))
            picked = [input_name, f"{input_name}_are_few"]
            before = [
                _node("Mul", [input_name, f"{input_name}_is_rest"], f"{input_name}_rest"),
                helper.make_node("Gather", picked, [f"{input_name}_few"], f"{EXACT}{input_name}", axis=-1),
            ]
        graph.initializer.append(numpy_helper.from_array(values[few], f"{weight.name}_few"))
        values = values.copy()
        values[few] = 0
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        node.input[0], node.output[0] = f"{input_name}_rest", f"{output_name}_rest"
        few_in = [f"{input_name}_few", f"{weight.name}_few"]
        exact = helper.make_node("MatMul", few_in, [f"{output_name}_few"], name=f"{EXACT}{output_name}")
        both = helper.make_node("Add", [*node.output, *exact.output], [output_name], name=f"{output_name}_sum")
        return [*before, node, exact, both]

    _each_product(graph, split_product)


def scale_tokens(model: Any) -> None:  # noqa: ANN401
    """Divide each token's activations by their maximum before a product, and multiply the result by it.

    The result is unchanged, but a token with large activations no longer sets the quantisation step of the others.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.array(1e-12, np.float32), "meve_least"))
    scaled: set[str] = set()

    def scale_product(node: Any) -> list[Any]:  # noqa: ANN401
        input_name, output_name = node.input[0], node.output[0]
        before = []
        if input_name not in scaled:
            scaled.add(input_name)
            top = f"{input_name}_top"
            before = [
                _node("Abs", [input_name], f"{input_name}_size"),
                _node("ReduceMax", [f"{input_name}_size"], f"{top}most", axes=[-1], keepdims=1),
                _node("Max", [f"{top}most", "meve_least"], top),  # a token may be all zeros
                _node("Div", [input_name, top], f"{input_name}_scaled"),
            ]
        node.input[0], node.output[0] = f"{input_name}_scaled", f"{output_name}_scaled"
        whole = helper.make_node("Mul", [*node.output, f"{input_name}_top"], [output_name], f"{output_name}_whole")
        return [*before, node, whole]

    _each_product(graph, scale_product)


def list_products(graph: Any) -> list[Any]:  # noqa: ANN401
    """Return matrix products with weights that no other node uses."""
    used = Counter(name for node in graph.node for name in node.input)
    stored = {c.name for c in graph.initializer if used[c.name] == 1 and len(c.dims) == 2}
    return [
        node for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in stored and not node.name.startswith(EXACT)
    ]  # fmt: skip


def _each_product(graph: Any, transform: Callable[[Any], list[Any]]) -> None:  # noqa: ANN401
    chosen = list_products(graph)
    nodes = []
    for node in graph.node:
        nodes += transform(node) if any(node is each for each in chosen) else [node]
    _replace_nodes(graph, nodes)


def _measure_activations(
    model: Any,  # noqa: ANN401
    names: Sequence[str],
    samples: Sequence[Mapping[str, Any]],
) -> dict[str, FloatArray]:
    """Return the largest magnitude of each channel of these activations, over all samples and tokens."""
    largest: dict[str, FloatArray] = {}
    for activations in run_samples(model, names, samples):
        for name, values in activations.items():
            top = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest[name], top) if name in largest else top
    return largest


def run_samples(
    model: Any,  # noqa: ANN401
    names: Sequence[str],
    samples: Iterable[Mapping[str, Any]],
) -> Iterator[dict[str, FloatArray]]:
    """Yield the activations of these names, one sample at a time."""
    disable_telemetry()
    import onnxruntime
    from onnx import TensorProto, helper

    outputs = model.graph.output
    known = len(outputs)
    outputs.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    del outputs[known:]
    for sample in samples:
        yield dict(zip(names, session.run(list(names), dict(sample)), strict=True))


def _node(kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a node with one output of the node's name."""
    from onnx import helper

    return helper.make_node(kind, inputs, [name], name=name, **attributes)


def _replace_nodes(graph: Any, nodes: Sequence[Any]) -> None:  # noqa: ANN401
    kept = list(nodes)
    del graph.node[:]
    graph.node.extend(kept)
