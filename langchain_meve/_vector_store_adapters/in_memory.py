"""The adapter for langchain-core's InMemoryVectorStore."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage
from langchain_meve._vector_store_adapters.base import VectorStoreAdapter
from meve.errors import ConfigurationError
from meve.types import FloatArray


class InMemoryAdapter(VectorStoreAdapter):
    """Adapts langchain-core's InMemoryVectorStore; a filter is a function of a document."""

    can_list = True
    searches_words = False

    def filter_options(self, where: Any) -> dict[str, Any]:
        """Return the search arguments.

        Raises:
            ConfigurationError: the filter is no function.
        """
        if not callable(where):
            raise ConfigurationError(
                f"filter must be a function of a document over {self.name}, such as "
                f"lambda document: document.metadata.get('folder') == 'howto', got {where!r:.80}"
            )
        return {"filter": where}

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        documents = self.vectorstore.get_by_ids(list(ids))
        admits = None if where is None else self.filter_options(where)["filter"]
        return [self.passage(document) for document in documents if admits is None or admits(document)]

    def list_passages(self) -> Iterable[DocumentPassage]:
        rows = list(self.vectorstore.store.values())
        return [self.passage(Document(id=d["id"], page_content=d["text"], metadata=d["metadata"])) for d in rows]

    def _stored_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        rows = {i: self.vectorstore.store.get(i) for i in ids}
        return {i: row["vector"] for i, row in rows.items() if row is not None}

    def size(self) -> int:
        return len(self.vectorstore.store)
