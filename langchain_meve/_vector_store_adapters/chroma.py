"""The adapter for langchain-chroma."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import VectorStoreAdapter
from meve.types import FloatArray

PAGE_SIZE = 500


class ChromaAdapter(VectorStoreAdapter):
    """Adapts langchain-chroma's Chroma; a filter is a mapping, with operators."""

    can_list = True
    searches_words = False

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Return the passages with these ids that the filter admits, read in pages since Chroma limits ids per call."""
        pages = [list(ids[start : start + PAGE_SIZE]) for start in range(0, len(ids), PAGE_SIZE)]
        return [passage for page in pages for passage in self._read(self.vectorstore.get(ids=page, where=where))]

    def list_passages(self) -> Iterable[DocumentPassage]:
        """Return all passages in one read, since pages would miss some during concurrent deletions."""
        return self._read(self.vectorstore.get())

    def _stored_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        result = self.vectorstore.get(ids=list(ids), include=["embeddings"])
        return dict(zip(result["ids"], result["embeddings"], strict=True))

    def size(self) -> int:
        return int(self.vectorstore._collection.count())

    def _read(self, result: dict[str, Any]) -> list[DocumentPassage]:
        rows = zip(result["ids"], result["documents"], result["metadatas"], strict=True)
        return [self.passage(Document(id=i, page_content=t or "", metadata=m or {})) for i, t, m in rows]
