"""The adapter for langchain-community's FAISS."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import VectorStoreAdapter
from meve.integrations._faiss_vectors import read_flat_vectors
from meve.types import FloatArray


class FaissAdapter(VectorStoreAdapter):
    """Adapts langchain-community's FAISS; a filter is a mapping, with operators, or a function of the metadata."""

    can_list = True
    searches_words = False
    replaces = False

    def filter_options(self, where: Any) -> dict[str, Any]:
        """Return the search arguments; FAISS filters what it fetched, so all documents must be fetched."""
        return {"filter": where, "fetch_k": max(self.vectorstore.index.ntotal, 1)}

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        admits = None if where is None else self.vectorstore._create_filter_func(where)
        documents = self.vectorstore.get_by_ids(list(ids))
        return [self.passage(document) for document in documents if admits is None or admits(document.metadata)]

    def list_passages(self) -> Iterable[DocumentPassage]:
        ids = list(self.vectorstore.index_to_docstore_id.values())
        return [self.passage(document) for document in self.vectorstore.get_by_ids(ids)]

    def _stored_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        wanted = set(ids)
        rows = {i: row for row, i in self.vectorstore.index_to_docstore_id.items() if i in wanted}
        return read_flat_vectors(self.vectorstore.index, rows)

    def size(self) -> int:
        return len(self.vectorstore.index_to_docstore_id)
