"""Loads ONNX graphs to run on one core each or on a GPU, and runs many inputs in parallel."""

import os
import re
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


KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""The inputs that a graph may have."""

_CUDA = "CUDAExecutionProvider"


def open_session(graph: Path, device: str | None = None) -> "InferenceSession":
    """Load a graph to run on one core or on a GPU.

    Signed 8-bit weights are the fastest where the processor adds products in 32 bits (VNNI, Arm). Others add in
    16 bits, which overflow; there ONNX Runtime converts the weights to unsigned ones, with the same result.

    Args:
        graph: the file.
        device: None or `cpu` for the processor; `cuda` or `cuda:N` for a GPU.

    Raises:
        ConfigurationError: ONNX Runtime can't use `device`, or not for a graph with 8-bit weights.
        ModelError: the graph can't be loaded.
    """
    number = cuda_number(device)
    disable_telemetry()
    import onnxruntime

    if number is not None:
        _check_cuda(graph, device)
    cuda = [] if number is None else [(_CUDA, {"device_id": number})]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if signed_products_overflow():
        options.add_session_config_entry("session.x64quantprecision", "1")
    with wrap_errors(ModelError, f"loading {graph}"):
        session = onnxruntime.InferenceSession(
            str(graph), options, providers=[*cuda, "CPUExecutionProvider"], enable_fallback=0
        )
    if cuda and _CUDA not in session.get_providers():
        raise ConfigurationError(
            f"device must be one that ONNX Runtime can use here, got {device!r}: it fell back to the CPU, since the "
            "GPU's driver, CUDA or cuDNN is missing or of another version than onnxruntime-gpu needs"
        )
    return session


def list_inputs(session: "InferenceSession", name: str) -> list[str]:
    """Return the names of a graph's inputs, after checking that they are known.

    Raises:
        ModelError: the graph has other inputs, or lacks input_ids.
    """
    inputs = [entry.name for entry in session.get_inputs()]
    if not {"input_ids"} <= set(inputs) <= set(KNOWN_INPUTS):
        raise ModelError(
            f"the graph of {name} has the inputs {', '.join(inputs)}, expected {', '.join(KNOWN_INPUTS)}: export it "
            "again with meve.components.verifiers.export_onnx, or an embedder with "
            "meve.training.onnx_embedder.quantize_embedder"
        )
    return inputs


def cuda_number(device: str | None) -> int | None:
    """Return the number of the GPU that a device names; None for the processor.

    >>> cuda_number("cuda"), cuda_number("cuda:1"), cuda_number("cpu"), cuda_number(None)
    (0, 1, None, None)

    Raises:
        ConfigurationError: another device than `cpu`, `cuda` and `cuda:N`.
    """
    if device in (None, "cpu"):
        return None
    named = re.fullmatch(r"cuda(?::(\d+))?", str(device))
    if named is None:
        raise ConfigurationError(f"device must be 'cpu', 'cuda' or 'cuda:N' for ONNX Runtime, got {device!r}")
    return int(named[1] or 0)


def _check_cuda(graph: Path, device: str | None) -> None:
    """Check that ONNX Runtime is built for CUDA, and that the graph isn't quantised.

    ONNX Runtime's CUDA provider has no kernel for DynamicQuantizeLinear, and multiplies no unsigned bytes. It would
    run these operators on the CPU and copy their inputs and outputs (docs/OperatorKernels.md of ONNX Runtime).
    """
    import onnxruntime

    if b"DynamicQuantizeLinear" in graph.read_bytes():
        raise ConfigurationError(
            f"device must be 'cpu' for {graph}, got {device!r}: ONNX Runtime has no CUDA kernels for its 8-bit "
            "products; load the model's weights in torch instead: the verifier that ships by "
            "load_verifier(device='cuda'), the embedder that ships by embedder='all-MiniLM-L6-v2', a cross-encoder of "
            "your own from the folder that meve.training.onnx_dequantize.dequantize_onnx writes"
        )
    available = onnxruntime.get_available_providers()
    if _CUDA not in available:
        raise ConfigurationError(
            f"device must be 'cpu', got {device!r}: the installed ONNX Runtime {onnxruntime.__version__} has "
            f"{', '.join(available)}, not {_CUDA}; pip uninstall onnxruntime, then pip install onnxruntime-gpu, which "
            "replaces it"
        )


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
