"""Loads ONNX graphs to run on one core each, and runs many inputs in parallel."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from meve.components._onnx_telemetry import disable_telemetry
from meve.errors import ConfigurationError, ModelError, wrap_errors

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_PRODUCT = (
    b'\x08\x08:>\n\x18\n\x01a\n\x01b\x12\x01y"\rMatMulInteger\x12\x01pZ\t\n\x01a\x12\x04\n\x02\x08\x02'
    b"Z\t\n\x01b\x12\x04\n\x02\x08\x03b\t\n\x01y\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\x0f"
)
"""A serialised graph: y = MatMulInteger(a, b), for unsigned a and signed b.

`tests/components/test_onnx_session.py` makes it."""


def open_session(graph: Path) -> "InferenceSession":
    """Load a graph to run on one core.

    Signed 8-bit weights are the fastest where the processor adds products in 32 bits (VNNI, Arm). Others add in
    16 bits, which overflow; there ONNX Runtime converts the weights to unsigned ones, with the same result.

    Raises:
        ModelError: the graph can't be loaded.
    """
    disable_telemetry()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if signed_products_overflow():
        options.add_session_config_entry("session.x64quantprecision", "1")
    with wrap_errors(ModelError, f"loading {graph}"):
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


@cache
def signed_products_overflow() -> bool:
    """Return whether sums of unsigned times signed bytes overflow on this processor, by trying the largest."""
    import onnxruntime

    session = onnxruntime.InferenceSession(_PRODUCT, providers=["CPUExecutionProvider"])
    size = 64
    largest = {"a": np.full((8, size), 255, np.uint8), "b": np.full((size, 16), 127, np.int8)}
    return bool(np.any(session.run(None, largest)[0] != 255 * 127 * size))


class CorePool:
    """Calls a function for many inputs in parallel, each on one core. Survives a fork.

    Args:
        threads: how many calls run at once; None for all cores.
        name: the prefix of the threads' names.

    Raises:
        ConfigurationError: `threads` is below 1.
    """

    def __init__(self, threads: int | None, name: str) -> None:
        if threads is not None and threads < 1:
            raise ConfigurationError(f"threads must be at least 1, got {threads}")
        self._threads = count_cores() if threads is None else threads
        self._name = name
        self._pool: tuple[int, ThreadPoolExecutor] | None = None

    def map(self, function: Callable[[_In], _Out], inputs: Sequence[_In]) -> list[_Out]:
        """Return the function's result for each input, in the order given."""
        if self._threads == 1 or len(inputs) < 2:
            return [function(each) for each in inputs]
        if self._pool is None or self._pool[0] != os.getpid():  # a forked process has none of its parent's threads
            self._pool = (os.getpid(), ThreadPoolExecutor(self._threads, self._name))
        return list(self._pool[1].map(function, inputs))


def count_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
