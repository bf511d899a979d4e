"""Validate vectors and scores: the right shape, and finite numbers only."""

import numpy as np

from meve.errors import ModelError, VectorError
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


def validate_scores(scores: object, count: int, verifier: str) -> FloatArray:
    """Return the scores of a verifier as float32, shape (n,), after checking their number and values.

    Args:
        scores: what the verifier returned.
        count: the number of passages that it was given.
        verifier: its name, for the message.

    Raises:
        ModelError: anything but a finite number for each passage.
    """
    wanted = f"verifier {verifier!r} must return one number for each of {count} passages, got"
    try:
        array = np.asarray(scores, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise ModelError(f"{wanted} {type(scores).__name__}: {scores!r:.60}") from cause
    if array.ndim != 1:
        raise ModelError(f"{wanted} {type(scores).__name__}: {scores!r:.60}")
    if len(array) != count:
        raise ModelError(f"{wanted} {len(array)} numbers")
    if broken := int((~np.isfinite(array)).sum()):
        raise ModelError(f"{wanted} NaN, infinity or None for {broken} of them")
    return array
