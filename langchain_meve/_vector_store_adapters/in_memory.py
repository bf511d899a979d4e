"""The adapter for langchain-core's InMemoryVectorStore."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import VectorStoreAdapter


class InMemoryAdapter(VectorStoreAdapter):
    """Adapts langchain-core's InMemoryVectorStore; a filter is a function of a document."""

    can_list = True
    searches_words = False

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        documents = self.vectorstore.get_by_ids(list(ids))
        return [self.passage(document) for document in documents if where is None or where(document)]

    def list_passages(self) -> Iterable[DocumentPassage]:
        rows = list(self.vectorstore.store.values())
        return [self.passage(Document(id=d["id"], page_content=d["text"], metadata=d["metadata"])) for d in rows]

    def size(self) -> int:
        return len(self.vectorstore.store)
