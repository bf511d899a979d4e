"""What may pass for a vector: the right shape, and finite numbers only."""

import numpy as np

from meve.errors import VectorError
from meve.types import FloatArray


def validate_vectors(vectors: object, shape: tuple[int, ...], maker: str) -> FloatArray:
    """Vectors as float32, if they can be used.

    Args:
        vectors: what should be numbers of that shape.
        shape: (d,) for one vector, (n, d) for n of them.
        maker: who made them, for the message.

    Raises:
        VectorError: another shape, no numbers, NaN or infinity.

    >>> validate_vectors([1, 2], (2,), "the index").dtype
    dtype('float32')
    """
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise VectorError(f"vectors of {maker} are no numbers: {cause}") from cause
    if array.shape != shape:
        raise VectorError(f"vectors of {maker} have shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise VectorError(f"vectors of {maker} hold NaN or infinity: nothing can be compared with them")
    return array
