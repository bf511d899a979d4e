"""Pass a LlamaIndex query's own embedding, or its custom texts to embed, through the phases to the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.schema import QueryBundle

from meve.ports import Embedder
from meve.types import FloatArray

_CURRENT_BUNDLE: ContextVar[QueryBundle | None] = ContextVar("llama_index_meve_query_bundle", default=None)


@contextmanager
def query_context(bundle: QueryBundle) -> Iterator[None]:
    """Make a query bundle available to the stores that are searched within the block."""
    token = _CURRENT_BUNDLE.set(bundle)
    try:
        yield
    finally:
        _CURRENT_BUNDLE.reset(token)


def bundle_with_embedding(query: str, embed_model: Any) -> QueryBundle:
    """Return a copy of the current query bundle with its embedding; a new bundle for the query of a later hop.

    Without an embedding model, nothing is embedded.
    """
    bundle = _CURRENT_BUNDLE.get()
    if bundle is None or bundle.query_str != query:
        bundle = QueryBundle(query_str=query)
    vector = bundle.embedding
    if vector is None and embed_model is not None:
        vector = embed_model.get_agg_embedding_from_queries(bundle.embedding_strs or [query])
    return replace(bundle, embedding=vector)


def query_vector(bundle: QueryBundle, embedder: Embedder) -> FloatArray | None:
    """Return the embedding that a query bundle defines; None if the embedder should embed the query text.

    An embedding of another dimension is ignored: it was made for another index that shares the query.
    """
    if bundle.embedding is not None and len(bundle.embedding) == embedder.dimension:
        return np.asarray(bundle.embedding, dtype=np.float32)
    if not bundle.custom_embedding_strs:
        return None
    mean = np.mean([embedder.embed_query(text) for text in bundle.custom_embedding_strs], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)
