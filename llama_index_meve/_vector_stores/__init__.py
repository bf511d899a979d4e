"""LlamaIndex vector indexes as external stores of the retriever."""

from llama_index.core.indices.vector_store.base import VectorStoreIndex

from llama_index_meve._vector_stores.base import IndexStore
from llama_index_meve._vector_stores.docstore_backed import DocstoreBackedStore, FaissMapStore, FaissStore, SimpleStore
from llama_index_meve._vector_stores.qdrant import QdrantStore
from meve.errors import ConfigurationError

_STORE_TYPES: dict[str, type[IndexStore]] = {
    "SimpleVectorStore": SimpleStore,
    "FaissMapVectorStore": FaissMapStore,
    "FaissVectorStore": FaissStore,
    "QdrantVectorStore": QdrantStore,
}
"""Adapters by the class name of LlamaIndex's vector store."""


def make_store(index: VectorStoreIndex) -> IndexStore:
    """Return the adapter for an index's vector store; a general one for unknown vector stores.

    Raises:
        ConfigurationError: the value is no VectorStoreIndex.
    """
    if not isinstance(index, VectorStoreIndex):
        raise ConfigurationError(
            f"index must be a VectorStoreIndex, got {type(index).__name__}: or give nodes to from_nodes(…)"
        )
    class_names = [cls.__name__ for cls in type(index.vector_store).__mro__]
    for name, store_type in _STORE_TYPES.items():
        if name in class_names:
            return store_type(index)
    return IndexStore(index) if index.vector_store.stores_text else DocstoreBackedStore(index)
