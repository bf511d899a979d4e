"""LangChain's vector stores as stores for the five phases: how each searches, filters, counts and lists."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_meve.documents import DocumentPassage, as_passage
from meve.errors import ConfigurationError

PAGE = 500


def store_of(vectorstore: VectorStore, filter_keyword: str | None = None) -> "AnyStore":
    """The way to a vector store: one of its own for those that are known here, and else what all have in common."""
    inner = getattr(vectorstore, "inner", None)  # a MeVeVectorStore goes around another
    if isinstance(inner, VectorStore) and hasattr(vectorstore, "as_verified_retriever"):
        return store_of(inner, filter_keyword)
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(vectorstore).__mro__}
    for name, made in KNOWN.items():
        if name in kinds:
            return made(vectorstore)
    return AnyStore(vectorstore, filter_keyword)


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

    def everything(self) -> Iterator[DocumentPassage]:
        """All that it holds, page by page."""
        at = 0
        while page := self._read(self.vectorstore.get(limit=PAGE, offset=at)):
            yield from page
            at += len(page)

    def size(self) -> int:
        """How many it holds."""
        return int(self.vectorstore._collection.count())

    def _read(self, found: dict[str, Any]) -> list[DocumentPassage]:
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return [self.passage(Document(id=i, page_content=t or "", metadata=m or {})) for i, t, m in rows]


class Qdrant(AnyStore):
    """langchain-qdrant's QdrantVectorStore; a filter is qdrant_client's. A document's id is in its metadata."""

    lists = True

    def filtered(self, where: Any) -> dict[str, Any]:
        """As it takes it."""
        return {"filter": where}

    def canonical(self, passage_id: str) -> str:
        """A number, or a UUID with hyphens, however it was given."""
        try:
            return passage_id if passage_id.isdigit() else str(uuid.UUID(passage_id))
        except ValueError:
            return passage_id

    def passage(self, document: Document) -> DocumentPassage:
        """With the id of its point."""
        found = document.metadata.get("_id", document.id)
        return as_passage(document, None if found is None else self.canonical(str(found)))

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits."""
        if not ids:
            return []
        from qdrant_client import models

        mine = models.HasIdCondition(has_id=[int(i) if i.isdigit() else i for i in ids])
        both = models.Filter(must=[mine, where] if where is not None else [mine])
        points, _ = self.vectorstore.client.scroll(
            self.vectorstore.collection_name, scroll_filter=both, limit=len(ids), with_payload=True
        )
        return self._read(points)

    def everything(self) -> Iterator[DocumentPassage]:
        """All that it holds, page by page."""
        at = None
        while True:
            points, at = self.vectorstore.client.scroll(
                self.vectorstore.collection_name, limit=PAGE, offset=at, with_payload=True
            )
            yield from self._read(points)
            if at is None:
                return

    def size(self) -> int:
        """How many it holds."""
        return int(self.vectorstore.client.count(self.vectorstore.collection_name, exact=True).count)

    def _read(self, points: Sequence[Any]) -> list[DocumentPassage]:
        store = self.vectorstore
        names = (store.collection_name, store.content_payload_key, store.metadata_payload_key)
        return [self.passage(store._document_from_point(point, *names)) for point in points]


KNOWN: dict[str, type[AnyStore]] = {
    "langchain_core.InMemoryVectorStore": InMemory,
    "langchain_community.FAISS": Faiss,
    "langchain_chroma.Chroma": ChromaDb,
    "langchain_qdrant.QdrantVectorStore": Qdrant,
}
