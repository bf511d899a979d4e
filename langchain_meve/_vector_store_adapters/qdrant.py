"""langchain-qdrant's QdrantVectorStore."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage, as_passage
from langchain_meve._vector_store_adapters.base import AnyStore

PAGE = 500
TOLD = ("_id", "_collection_name")
"""What the store adds to the metadata of what it returns."""
NAME = "meve_id"
"""Under which metadata a document's id is kept, where no point can have it."""
_MOST = 2**64 - 1
_SPACE = uuid.UUID("0b7d1c62-55f0-4b0c-9f0e-6a5f7a1f3d84")


class Qdrant(AnyStore):
    """langchain-qdrant's QdrantVectorStore; a filter is qdrant_client's. A document's id is in its metadata."""

    lists = True

    def filtered(self, where: Any) -> dict[str, Any]:
        """As it takes it."""
        return {"filter": where}

    def canonical(self, passage_id: str) -> str:
        """A number, or a UUID with hyphens, however it was given; another id as it is."""
        made = _own(passage_id)
        return passage_id if made is None else str(made)

    def key(self, document_id: str) -> int | str:
        """A number or a UUID: all that a point can have for an id. For another one, a UUID that is made of it."""
        made = _own(document_id)
        return str(uuid.uuid5(_SPACE, document_id)) if made is None else made

    def entering(self, document: Document, document_id: str) -> Document:
        """With the id in its metadata, where no point can have it."""
        if _own(document_id) is not None:
            return document
        return document.model_copy(update={"metadata": {**document.metadata, NAME: document_id}})

    def leaving(self, document: Document) -> Document:
        """With its id, and without what the store tells in the metadata."""
        kept = {name: value for name, value in document.metadata.items() if name not in (*TOLD, NAME)}
        return Document(id=self._id(document), page_content=document.page_content, metadata=kept)

    def passage(self, document: Document) -> DocumentPassage:
        """With the id that it went in with, or that of its point."""
        return as_passage(document, self._id(document))

    def _id(self, document: Document) -> str | None:
        found = document.metadata.get(NAME, document.metadata.get("_id", document.id))
        return None if found is None else self.canonical(str(found))

    def present(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        """Those that it holds and the filter admits."""
        if not ids:
            return []
        from qdrant_client import models

        mine = models.HasIdCondition(has_id=[self.key(i) for i in ids])
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


def _own(document_id: str) -> int | str | None:
    """An id as a point has it; None for one that none can have."""
    if document_id.isascii() and document_id.isdecimal() and len(document_id) <= len(str(_MOST)):
        number = int(document_id)
        return number if number <= _MOST and str(number) == document_id else None
    try:
        return str(uuid.UUID(document_id))
    except ValueError:
        return None
