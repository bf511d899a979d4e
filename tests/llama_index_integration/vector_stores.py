"""Vector stores in memory, and indexes over them."""

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_meve import MeVeEmbedding
from meve.testing.fakes import WordEmbedder


def simple():
    return SimpleVectorStore()


def faiss():
    library = pytest.importorskip("faiss")
    from llama_index.vector_stores.faiss import FaissVectorStore

    return FaissVectorStore(library.IndexFlatIP(WordEmbedder().dimension))


def faiss_map():
    library = pytest.importorskip("faiss")
    from llama_index.vector_stores.faiss import FaissMapVectorStore

    return FaissMapVectorStore(library.IndexIDMap2(library.IndexFlatIP(WordEmbedder().dimension)))


def qdrant():
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    return QdrantVectorStore("c", client=QdrantClient(":memory:"))


STORES = {
    "SimpleVectorStore": simple,
    "FaissVectorStore": faiss,
    "FaissMapVectorStore": faiss_map,
    "QdrantVectorStore": qdrant,
}
DELETABLE = [name for name in STORES if name != "FaissVectorStore"]
"""Those that can let go of a node."""


def build_index(kind, nodes, store=None):
    storage = StorageContext.from_defaults(vector_store=store or STORES[kind]())
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=MeVeEmbedding(WordEmbedder()))
