"""Reads vectors back from a FAISS index."""

import contextlib
from collections.abc import Mapping
from typing import Any

from meve.types import FloatArray


def read_flat_vectors(index: Any, rows: Mapping[str, int]) -> dict[str, FloatArray]:  # noqa: ANN401 - of no type stubs
    """Return the vectors by id, given their rows; only those that the index keeps as they were added."""
    import faiss

    flat = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexIDMap2) else index
    if not isinstance(flat, faiss.IndexFlat | faiss.IndexHNSWFlat):
        return {}
    vectors = {}
    for i, row in rows.items():
        with contextlib.suppress(RuntimeError):  # the index has no such row
            vectors[i] = index.reconstruct(row)
    return vectors
