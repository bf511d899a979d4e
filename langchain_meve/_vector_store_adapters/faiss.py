"""langchain-community's FAISS."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import AnyStore


class Faiss(AnyStore):
    """langchain-community's FAISS; a filter is a mapping, with operators, or a function of the metadata."""

    lists = True
    replaces = False

    def filtered(self, where: Any) -> dict[str, Any]:
        """It filters what it fetched, so all must be fetched, or it would find too few."""
        return {"filter": where, "fetch_k": max(self.vectorstore.index.ntotal, 1)}

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits."""
        admits = None if where is None else self.vectorstore._create_filter_func(where)
        found = self.vectorstore.get_by_ids(list(ids))
        return [self.passage(document) for document in found if admits is None or admits(document.metadata)]

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds."""
        ids = list(self.vectorstore.index_to_docstore_id.values())
        return [self.passage(document) for document in self.vectorstore.get_by_ids(ids)]

    def size(self) -> int:
        """How many it holds."""
        return len(self.vectorstore.index_to_docstore_id)
