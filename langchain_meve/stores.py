"""LangChain's vector stores as stores for the five phases: how each searches, filters, counts and lists."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_meve.documents import DocumentPassage, as_passage
from meve.errors import ConfigurationError

PAGE = 1_000


def store_of(vectorstore: VectorStore) -> "AnyStore":
    """The way to a vector store: one of its own for those that are known here, and else what all have in common."""
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(vectorstore).__mro__}
    for name, made in KNOWN.items():
        if name in kinds:
            return made(vectorstore)
    return AnyStore(vectorstore)


class AnyStore:
    """What every vector store can: search, and mostly get by id. Filters pass through to the search.

    It can't tell which of its documents a filter admits, so with a filter none is taken for admitted by words alone.
    """

    def __init__(self, vectorstore: VectorStore) -> None:
        self.vectorstore: Any = vectorstore

    @property
    def name(self) -> str:
        """The store's class."""
        return type(self.vectorstore).__name__

    def nearest(self, query: str, k: int, where: Any) -> list[tuple[DocumentPassage, float | None]]:
        """What its similarity search brings, with its scores if it has any."""
        options = {} if where is None else self.filtered(where)
        try:
            found = self.vectorstore.similarity_search_with_score(query, k=k, **options)
        except NotImplementedError:
            plain = self.vectorstore.similarity_search(query, k=k, **options)
            return [(self.passage(document), None) for document in plain if document.page_content.strip()]
        return [(self.passage(document), float(score)) for document, score in found if document.page_content.strip()]

    def filtered(self, where: Any) -> dict[str, Any]:
        """How a search is told of a filter."""
        return {"filter": where}

    def passage(self, document: Document) -> DocumentPassage:
        """A document of this store as a passage."""
        return as_passage(document)

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Which of these it still holds; with a filter, none."""
        if where is not None:
            return []
        try:
            found = self.vectorstore.get_by_ids(list(ids))
        except NotImplementedError:
            return []
        return self.passages(found)

    def passages(self, documents: Iterable[Document]) -> list[DocumentPassage]:
        """Those that have text."""
        return [self.passage(document) for document in documents if document.page_content.strip()]

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

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the function admits."""
        found = self.vectorstore.get_by_ids(list(ids))
        return self.passages(document for document in found if where is None or where(document))

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds."""
        held = list(self.vectorstore.store.values())
        return self.passages(Document(id=d["id"], page_content=d["text"], metadata=d["metadata"]) for d in held)

    def size(self) -> int:
        """How many it holds."""
        return len(self.vectorstore.store)


class Faiss(AnyStore):
    """langchain-community's FAISS; a filter is a mapping, with operators, or a function of the metadata."""

    def filtered(self, where: Any) -> dict[str, Any]:
        """It filters what it fetched, so all must be fetched, or it would find too few."""
        return {"filter": where, "fetch_k": max(self.vectorstore.index.ntotal, 1)}

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits."""
        admits = None if where is None else self.vectorstore._create_filter_func(where)
        found = self.vectorstore.get_by_ids(list(ids))
        return self.passages(document for document in found if admits is None or admits(document.metadata))

    def everything(self) -> Iterable[DocumentPassage]:
        """All that it holds."""
        ids = list(self.vectorstore.index_to_docstore_id.values())
        return self.passages(self.vectorstore.get_by_ids(ids))

    def size(self) -> int:
        """How many it holds."""
        return len(self.vectorstore.index_to_docstore_id)


class ChromaDb(AnyStore):
    """langchain-chroma's Chroma; a filter is a mapping, with operators."""

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits."""
        return self._read(self.vectorstore.get(ids=list(ids), where=where)) if ids else []

    def everything(self) -> Iterator[DocumentPassage]:
        """All that it holds, page by page."""
        at = 0
        while page := self.vectorstore.get(limit=PAGE, offset=at)["ids"]:
            yield from self._read(self.vectorstore.get(ids=page))
            at += len(page)

    def size(self) -> int:
        """How many it holds."""
        return int(self.vectorstore._collection.count())

    def _read(self, found: dict[str, Any]) -> list[DocumentPassage]:
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        return self.passages(Document(id=i, page_content=text or "", metadata=meta or {}) for i, text, meta in rows)


class Qdrant(AnyStore):
    """langchain-qdrant's QdrantVectorStore; a filter is qdrant_client's. A document's id is in its metadata."""

    def passage(self, document: Document) -> DocumentPassage:
        """With the id of its point."""
        return as_passage(document, str(document.metadata.get("_id") or document.id))

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
        return self.passages(
            store._document_from_point(
                point, store.collection_name, store.content_payload_key, store.metadata_payload_key
            )
            for point in points
        )


KNOWN: dict[str, type[AnyStore]] = {
    "langchain_core.InMemoryVectorStore": InMemory,
    "langchain_community.FAISS": Faiss,
    "langchain_chroma.Chroma": ChromaDb,
    "langchain_qdrant.QdrantVectorStore": Qdrant,
}
