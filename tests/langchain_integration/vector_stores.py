"""The vector stores under test, each with a filter in its own syntax."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore


@dataclass(frozen=True)
class Kind:
    name: str
    make: Callable[[Embeddings], VectorStore]
    english: Callable[[], Any]
    """A filter that only documents with lang "en" pass."""


def faiss(embeddings: Embeddings) -> VectorStore:
    from faiss import IndexFlatL2

    community = import_module("langchain_community.vectorstores.faiss")
    docstore = import_module("langchain_community.docstore.in_memory").InMemoryDocstore()
    index = IndexFlatL2(len(embeddings.embed_query("a")))
    return community.FAISS(embeddings, index, docstore, {})


def chroma(embeddings: Embeddings) -> VectorStore:
    from chromadb import EphemeralClient
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    client = EphemeralClient(Settings(anonymized_telemetry=False))
    return Chroma(collection_name=f"c{uuid.uuid4().hex}", embedding_function=embeddings, client=client)


def qdrant(embeddings: Embeddings) -> VectorStore:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = len(embeddings.embed_query("a"))
    client.create_collection("c", vectors_config=models.VectorParams(size=size, distance=models.Distance.COSINE))
    return QdrantVectorStore(client=client, collection_name="c", embedding=embeddings)


def qdrant_english() -> Any:
    from qdrant_client import models

    return models.Filter(must=[models.FieldCondition(key="metadata.lang", match=models.MatchValue(value="en"))])


def in_memory_english() -> Callable[[Document], bool]:
    return lambda document: document.metadata.get("lang") == "en"


class UnknownVectorStore(VectorStore):
    """A store without an adapter, which can search and get by id."""

    def __init__(self, embeddings):
        self._inner = InMemoryVectorStore(embeddings)
        self.add_documents, self.delete = self._inner.add_documents, self._inner.delete

    def similarity_search(self, query, k=4, **kwargs):
        return self._inner.similarity_search(query, k=k, **kwargs)

    def get_by_ids(self, ids, /):
        return self._inner.get_by_ids(ids)

    @classmethod
    def from_texts(cls, *args, **kwargs):
        raise NotImplementedError


KINDS = [
    Kind("InMemoryVectorStore", InMemoryVectorStore, in_memory_english),
    Kind("FAISS", faiss, lambda: {"lang": "en"}),
    Kind("Chroma", chroma, lambda: {"lang": "en"}),
    Kind("QdrantVectorStore", qdrant, qdrant_english),
]
