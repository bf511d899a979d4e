"""What every vector store of LangChain's can: search, and mostly get by id."""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_meve._documents import DocumentPassage, as_passage
from meve.errors import ConfigurationError


class AnyStore:
    """What every vector store can: search, and mostly get by id.

    It can't tell which of its documents a filter admits, so with a filter none is taken for admitted by words alone.

    Args:
        vectorstore: it.
        filter_keyword: by which name its search takes a filter; None where that isn't known.
    """

    lists = False
    """Whether it can list and count what it holds."""
    replaces = True
    """Whether adding under an id that is taken replaces what was there."""

    def __init__(self, vectorstore: VectorStore, filter_keyword: str | None = None) -> None:
        self.vectorstore: Any = vectorstore
        self._filter_keyword = filter_keyword

    @property
    def name(self) -> str:
        """The store's class."""
        return type(self.vectorstore).__name__

    def canonical(self, passage_id: str) -> str:
        """An id as the store spells it."""
        return passage_id

    def key(self, document_id: str) -> Any:
        """An id as the store takes it."""
        return document_id

    def entering(self, document: Document, document_id: str) -> Document:  # noqa: ARG002
        """A document as the store is to keep it, under the key of this id."""
        return document

    def leaving(self, document: Document) -> Document:
        """A document of the store's, as it went in."""
        return document

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[DocumentPassage, float | None]]:
        """What its similarity search brings, with its scores if it has any."""
        options = {} if where is None else self.filtered(where)
        try:
            found = self.vectorstore.similarity_search_with_score(query, k=k, **options)
        except NotImplementedError:
            plain = self.vectorstore.similarity_search(query, k=k, **options)
            return [(self.passage(document), None) for document in plain]
        return [(self.passage(document), float(score)) for document, score in found]

    def filtered(self, where: Any) -> dict[str, Any]:
        """How a search is told of a filter.

        Raises:
            ConfigurationError: that isn't known; a store would ignore a word that it doesn't know.
        """
        if self._filter_keyword is None:
            raise ConfigurationError(
                f"it isn't known how {self.name} takes a filter, and it may ignore one: give "
                "from_vectorstore(…, filter_keyword=…), the name under which its similarity_search takes it"
            )
        return {self._filter_keyword: where}

    def passage(self, document: Document) -> DocumentPassage:
        """A document of this store as a passage."""
        return as_passage(document)

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Which of these it still holds; with a filter, none."""
        return [] if where is not None else [self.passage(d) for d in self.vectorstore.get_by_ids(list(ids))]

    def check_documents(self, documents: Sequence[Document]) -> None:
        """Refuse documents that the store couldn't be asked for when their words are found.

        Raises:
            ConfigurationError: it can't get by id, or some have none.
        """
        if type(self.vectorstore).get_by_ids is VectorStore.get_by_ids:
            raise ConfigurationError(
                f"{self.name} can't get documents by their id, so nobody could tell whether it still holds what words "
                "find: leave documents out, and it is searched by vectors alone"
            )
        nameless = sum(not document.id for document in documents)
        if nameless:
            raise ConfigurationError(f"{nameless} of {len(documents)} documents have no id: give those of the store")

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds.

        Raises:
            ConfigurationError: it can't tell.
        """
        raise ConfigurationError(
            f"{self.name} can't list what it holds: give from_vectorstore(…, documents=…) to search by words"
        )

    def size(self) -> int | None:
        """How many it holds; None where it can't tell."""
        return None
