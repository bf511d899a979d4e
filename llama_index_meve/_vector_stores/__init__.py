"""LlamaIndex's vector indexes as stores for the five phases: which way leads to which."""

from llama_index.core.indices.vector_store.base import VectorStoreIndex

from llama_index_meve._vector_stores.base import AnyIndex
from llama_index_meve._vector_stores.docstore_backed import Described, FaissMap, Simple
from llama_index_meve._vector_stores.qdrant import Qdrant
from meve.errors import ConfigurationError

__all__ = ["KNOWN", "AnyIndex", "store_of"]

KNOWN: dict[str, type[AnyIndex]] = {
    "SimpleVectorStore": Simple,
    "FaissMapVectorStore": FaissMap,
    "QdrantVectorStore": Qdrant,
}


def store_of(index: VectorStoreIndex) -> AnyIndex:
    """The way to an index: one of its own for the vector stores that are known here, else what all have in common.

    Raises:
        ConfigurationError: no index over a vector store.
    """
    if not isinstance(index, VectorStoreIndex):
        raise ConfigurationError(f"index is {type(index).__name__}: give a VectorStoreIndex, or nodes to from_nodes")
    kinds = [kind.__name__ for kind in type(index.vector_store).__mro__]
    for name, made in KNOWN.items():
        if name in kinds:
            return made(index)
    return AnyIndex(index) if index.vector_store.stores_text else Described(index)
