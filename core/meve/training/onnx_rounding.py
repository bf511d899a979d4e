"""Rounds the weights of matrix products to 8 bits so that the products, not the weights, change least."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meve.training.onnx_graph import list_products, run_samples
from meve.types import FloatArray

STEPS = 127
"""The largest 8-bit weight; the step of a column is its largest magnitude divided by it."""
DAMPING = 0.01
"""The share of the mean of the diagonal that is added to the diagonal, so that the matrix can be inverted."""


def round_weights(model: Any, samples: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401
    """Round the weights of each matrix product to multiples of their column's step.

    Args:
        model: an onnx.ModelProto, changed in place; its weights stay fp32.
        samples: inputs of the graph, to measure the activations.

    Source: Frantar et al., GPTQ (2023), algorithm 1, with rows in the order of their activations.
    """
    from onnx import numpy_helper

    products = list_products(model.graph)
    moments: dict[str, np.ndarray] = {}
    for activations in run_samples(model, sorted({node.input[0] for node in products}), samples):
        for name, values in activations.items():
            rows = values.reshape(-1, values.shape[-1]).astype(np.float64)
            moments[name] = moments.get(name, 0.0) + rows.T @ rows
    stored = {c.name: c for c in model.graph.initializer}
    for node in products:
        weight = stored[node.input[1]]
        rounded = round_matrix(numpy_helper.to_array(weight), moments[node.input[0]])
        weight.CopyFrom(numpy_helper.from_array(rounded, weight.name))


def round_matrix(weights: FloatArray, moments: np.ndarray) -> FloatArray:
    """Return the weights rounded, so that the squared error of `x @ weights` is small.

    Rows are rounded in turn, and the error of each is made up for by the rows that follow.

    Args:
        weights: shape (inputs, outputs).
        moments: the sum of `x.T @ x` over the samples, shape (inputs, inputs).
    """
    order = np.argsort(-np.diag(moments), kind="stable")
    left = weights[order].astype(np.float64)
    largest = np.abs(left).argmax(axis=0)
    step = np.maximum(np.abs(left).max(axis=0) / STEPS, 1e-12)
    signs = np.sign(left[largest, np.arange(left.shape[1])])
    damped = moments[np.ix_(order, order)] + DAMPING * max(np.diag(moments).mean(), 1e-12) * np.eye(len(left))
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    rounded = np.zeros_like(left)
    for n, row in enumerate(left):
        whole = np.clip(np.round(row / step), -STEPS, STEPS)
        whole = np.where(largest == n, signs * STEPS, whole)  # so that the step can be read from the result
        rounded[n] = whole * step
        left[n + 1 :] -= np.outer(factor[n, n + 1 :], (row - rounded[n]) / factor[n, n])
    result = np.empty_like(rounded)
    result[order] = rounded
    return result.astype(np.float32)
