"""Validate vectors: the right shape, and finite numbers only."""

import numpy as np

from meve.errors import VectorError
from meve.types import FloatArray


def validate_vectors(vectors: object, shape: tuple[int, ...], maker: str) -> FloatArray:
    """Return vectors as float32 after checking shape and values.

    Args:
        vectors: numbers of the given shape.
        shape: (d,) for one vector, (n, d) for n of them.
        maker: the name of the component that returned them, for the message.

    Raises:
        VectorError: another shape, other values than numbers, NaN or infinity.

    >>> validate_vectors([1, 2], (2,), "the index").dtype
    dtype('float32')
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise VectorError(f"vectors of {maker} must be numbers: {cause}") from cause
    if array.shape != shape:
        raise VectorError(f"vectors of {maker} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise VectorError(f"vectors of {maker} must be finite: got NaN or infinity")
    return array
