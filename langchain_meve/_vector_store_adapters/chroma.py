"""langchain-chroma's Chroma."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import AnyStore

PAGE = 500


class ChromaDb(AnyStore):
    """langchain-chroma's Chroma; a filter is a mapping, with operators."""

    lists = True

    def filtered(self, where: Any) -> dict[str, Any]:
        """As it takes it."""
        return {"filter": where}

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits; it takes so many ids at once and no more."""
        pages = [list(ids[at : at + PAGE]) for at in range(0, len(ids), PAGE)]
        return [passage for page in pages for passage in self._read(self.vectorstore.get(ids=page, where=where))]

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds, in one read: pages would miss some where others delete meanwhile."""
        return self._read(self.vectorstore.get())

    def size(self) -> int:
        """How many it holds."""
        return int(self.vectorstore._collection.count())

    def _read(self, found: dict[str, Any]) -> list[DocumentPassage]:
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return [self.passage(Document(id=i, page_content=t or "", metadata=m or {})) for i, t, m in rows]
