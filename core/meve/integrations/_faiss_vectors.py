"""Reads vectors back from a FAISS index."""

from collections.abc import Mapping
from typing import Any

from meve.types import FloatArray


def read_flat_vectors(index: Any, rows: Mapping[str, int]) -> dict[str, FloatArray]:  # noqa: ANN401 - of no type stubs
    """Return the vectors by id, given their rows; none of an index that doesn't keep them as they were added."""
    import faiss

    flat = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexIDMap2) else index
    if not isinstance(flat, faiss.IndexFlat | faiss.IndexHNSWFlat):
        return {}
    return {i: index.reconstruct(row) for i, row in rows.items()}
