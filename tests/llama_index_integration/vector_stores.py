"""Vector stores in memory, and indexes over them."""

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import PrivateAttr

from llama_index_meve import MeVeEmbedding
from meve.testing.fakes import WordEmbedder


class TextStore(BasePydanticVectorStore):
    """Keeps its nodes itself, as databases do, and can only search; it has no async methods of its own."""

    stores_text: bool = True
    _vectors: SimpleVectorStore = PrivateAttr(default_factory=SimpleVectorStore)
    _nodes: dict = PrivateAttr(default_factory=dict)

    @property
    def client(self):
        return None

    def add(self, nodes, **kwargs):
        self._nodes |= {each.node_id: each for each in nodes}
        return self._vectors.add(nodes, **kwargs)

    def delete(self, ref_doc_id, **kwargs):
        self._vectors.delete(ref_doc_id)

    def query(self, query, **kwargs):
        return self._search(query)

    def _search(self, query):
        result = self._vectors.query(query)
        result.nodes = [self._nodes[i] for i in result.ids]
        return result


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
"""Stores that can delete nodes."""


def build_index(kind, nodes, store=None):
    storage = StorageContext.from_defaults(vector_store=store or STORES[kind]())
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=MeVeEmbedding(WordEmbedder()))
