"""Adapters from LangChain's vector stores to `meve.retrieval.external_store`: search, filters, counting, listing."""

from collections.abc import Mapping
from typing import Any

from langchain_core.vectorstores import VectorStore

from langchain_meve._vector_store_adapters.base import VectorStoreAdapter
from langchain_meve._vector_store_adapters.chroma import ChromaAdapter
from langchain_meve._vector_store_adapters.faiss import FaissAdapter
from langchain_meve._vector_store_adapters.in_memory import InMemoryAdapter
from langchain_meve._vector_store_adapters.qdrant import QdrantAdapter
from meve.errors import ConfigurationError

ADAPTERS: dict[str, type[VectorStoreAdapter]] = {
    "langchain_core.InMemoryVectorStore": InMemoryAdapter,
    "langchain_community.FAISS": FaissAdapter,
    "langchain_chroma.Chroma": ChromaAdapter,
    "langchain_qdrant.QdrantVectorStore": QdrantAdapter,
}


def adapt_vector_store(
    vectorstore: VectorStore, filter_keyword: str | None = None, search_kwargs: Mapping[str, Any] | None = None
) -> VectorStoreAdapter:
    """Return the adapter for a vector store, or the generic one if its class isn't in `ADAPTERS`.

    Raises:
        ConfigurationError: it is no vector store.
    """
    if not isinstance(vectorstore, VectorStore):
        raise ConfigurationError(
            f"the store must be a LangChain VectorStore, got {type(vectorstore).__name__}: such as "
            "InMemoryVectorStore(embeddings)"
        )
    inner = getattr(vectorstore, "inner", None)  # a MeVeVectorStore goes around another
    if isinstance(inner, VectorStore) and hasattr(vectorstore, "as_verified_retriever"):
        return adapt_vector_store(inner, filter_keyword, search_kwargs)
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(vectorstore).__mro__}
    for name, adapter in ADAPTERS.items():
        if name in kinds:
            return adapter(vectorstore, "filter", search_kwargs)
    return VectorStoreAdapter(vectorstore, filter_keyword, search_kwargs)


__all__ = ["ADAPTERS", "VectorStoreAdapter", "adapt_vector_store"]
