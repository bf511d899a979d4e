"""langchain-core's InMemoryVectorStore."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import AnyStore


class InMemory(AnyStore):
    """langchain-core's InMemoryVectorStore; a filter is a function of a document."""

    lists = True

    def filtered(self, where: Any) -> dict[str, Any]:
        """As it takes it."""
        return {"filter": where}

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the function admits."""
        found = self.vectorstore.get_by_ids(list(ids))
        return [self.passage(document) for document in found if where is None or where(document)]

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds."""
        held = list(self.vectorstore.store.values())
        return [self.passage(Document(id=d["id"], page_content=d["text"], metadata=d["metadata"])) for d in held]

    def size(self) -> int:
        """How many it holds."""
        return len(self.vectorstore.store)
