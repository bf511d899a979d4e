"""A question as LlamaIndex put it: with an embedding that is known already, or other texts to embed in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.schema import QueryBundle

from meve.ports import Embedder
from meve.types import FloatArray

_PUT: ContextVar[QueryBundle | None] = ContextVar("llama_index_meve_question", default=None)


@contextmanager
def put(bundle: QueryBundle) -> Iterator[None]:
    """While the phases work on a question, stores can learn how it was put."""
    token = _PUT.set(bundle)
    try:
        yield
    finally:
        _PUT.reset(token)


def as_put(query: str, embed_model: Any) -> QueryBundle:
    """A question for a vector store: a bundle of its own, with its embedding.

    What a later hop asks is another question, and is embedded anew.

    Args:
        query: the question that is asked of the store.
        embed_model: the index's; None where the store wants no embedding.
    """
    given = _PUT.get()
    if given is None or given.query_str != query:
        given = QueryBundle(query_str=query)
    vector = given.embedding
    if vector is None and embed_model is not None:
        vector = embed_model.get_agg_embedding_from_queries(given.embedding_strs or [query])
    return replace(given, embedding=vector)


def vector_of(bundle: QueryBundle, embedder: Embedder) -> FloatArray | None:
    """The embedding that a question comes with, for a corpus with an embedder of its own; None where it is the usual.

    An embedding of another dimension was made for another index, as when retrievers of several share a question.
    """
    given = bundle.embedding
    if given is not None and len(given) == embedder.dimension:
        return np.asarray(given, dtype=np.float32)
    if not bundle.custom_embedding_strs:
        return None
    mean = np.mean([embedder.embed_query(text) for text in bundle.custom_embedding_strs], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)
