"""Reads the vectors of Qdrant's points."""

from collections.abc import Mapping, Sequence
from typing import Any

from meve.types import FloatArray


def read_point_vectors(points: Sequence[Any], ids: Mapping[str, str], name: str) -> dict[str, FloatArray]:
    """Return the dense vectors by passage id.

    Args:
        points: with their vectors, which have no name, or one each.
        ids: the passage ids by point id.
        name: of the dense vectors, where they have one.
    """
    vectors = {str(p.id): p.vector.get(name) if isinstance(p.vector, dict) else p.vector for p in points}
    return {ids[i]: vector for i, vector in vectors.items() if vector is not None and i in ids}
