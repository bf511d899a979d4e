"""Checks torch devices, and sizes batches to the memory of a GPU."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from meve.errors import ConfigurationError

if TYPE_CHECKING:
    import torch

_Out = TypeVar("_Out")

MAX_BATCH = 256
"""The largest default batch size: a query has tens of passages, and an index embeds 64 at a time."""
_SHARE = 0.5
"""The share of the free memory that a batch may take. The rest is for other models, and since this is an estimate."""
_HIDDEN_ARRAYS, _INNER_ARRAYS = 8, 2
"""The number of arrays of hidden and of inner size that a transformer layer holds at once.

Input, query, key, value, context, projection, residual and norm; and the inner layer before and after its activation.
Attention weights aren't counted: torch's fused attention doesn't store them.
"""
_BYTES = 4
"""Bytes of a number in fp32."""


def check_torch_device(device: str | None) -> None:
    """Check that torch can use a device, by placing a number there; None means that torch chooses.

    Raises:
        ConfigurationError: no such device, or torch was built without support for it.
    """
    if device is None:
        return
    import torch

    try:
        torch.zeros(1, device=device).tolist()  # read back, since a device such as `meta` holds no numbers
    except (AssertionError, RuntimeError, TypeError) as cause:
        why = str(cause).strip().splitlines()[0]
        raise ConfigurationError(
            f"device must be one that torch {torch.__version__} can use here, such as 'cpu', got {device!r} ({why}): "
            "for 'cuda', install the NVIDIA driver and a build of torch for CUDA, as pytorch.org/get-started shows"
        ) from cause


def choose_batch_size(config: Mapping[str, Any], window: int | None, device: "torch.device", default: int) -> int:
    """Return how many texts a transformer reads at once: what the free memory holds on CUDA, `default` elsewhere.

    Args:
        config: the transformer's configuration; without `hidden_size`, `default` is returned.
        window: the longest text in tokens; None for no limit, which returns `default`.
        device: where the model is loaded.
        default: the batch size of other devices, at least 1.
    """
    if device.type != "cuda" or window is None or "hidden_size" not in config:
        return default
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return fit_batch_size(config, window, free)


def fit_batch_size(config: Mapping[str, Any], window: int, free: int) -> int:
    """Return how many texts of `window` tokens fit half of `free` bytes, between 1 and 256.

    >>> minilm = {"hidden_size": 384, "intermediate_size": 1536}
    >>> [fit_batch_size(minilm, 384, free) for free in (10**6, 10**9, 10**11)]
    [1, 52, 256]
    """
    hidden = int(config["hidden_size"])
    inner = int(config.get("intermediate_size") or 4 * hidden)
    per_text = _BYTES * window * (_HIDDEN_ARRAYS * hidden + _INNER_ARRAYS * inner)
    return max(1, min(MAX_BATCH, int(_SHARE * free) // per_text))


def run_within_memory(run: Callable[[int], _Out], batch_size: int) -> _Out:
    """Return `run(batch_size)`, halving the batch size each time the device's memory is too small.

    Raises:
        torch.OutOfMemoryError: the memory is too small for a batch of one.
    """
    import torch

    while True:
        try:
            return run(batch_size)
        except torch.OutOfMemoryError:
            if batch_size == 1:
                raise
        batch_size = (batch_size + 1) // 2  # outside of `except`, where the error still holds the batch in memory
        torch.cuda.empty_cache()
