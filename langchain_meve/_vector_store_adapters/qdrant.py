"""The adapter for langchain-qdrant's QdrantVectorStore."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_meve._documents import DocumentPassage, document_to_passage
from langchain_meve._vector_store_adapters.base import VectorStoreAdapter
from meve.errors import ConfigurationError
from meve.integrations._qdrant_vectors import read_point_vectors
from meve.types import FloatArray

PAGE_SIZE = 500
_ADDED_METADATA = ("_id", "_collection_name")
"""Metadata keys that the store adds to the documents that it returns."""
_ID_METADATA = "meve_id"
"""The metadata key of a document id that is no valid point id."""
_MAX_POINT_ID = 2**64 - 1
_ID_NAMESPACE = uuid.UUID("0b7d1c62-55f0-4b0c-9f0e-6a5f7a1f3d84")


class QdrantAdapter(VectorStoreAdapter):
    """Adapts langchain-qdrant's QdrantVectorStore; a filter is qdrant_client's. Document ids stand in the metadata."""

    can_list = True

    def canonical_id(self, passage_id: str) -> str:
        """Return a number, or a UUID with hyphens, for a valid point id, and any other id as it is."""
        point_id = _point_id(passage_id)
        return passage_id if point_id is None else str(point_id)

    def to_store_id(self, document_id: str) -> int | str:
        """Return a valid point id, which is a number or a UUID; any other id is hashed to a UUID."""
        point_id = _point_id(document_id)
        return str(uuid.uuid5(_ID_NAMESPACE, document_id)) if point_id is None else point_id

    def to_stored(self, document: Document, document_id: str) -> Document:
        """Return the document with its id in the metadata, unless that is a valid point id."""
        if _point_id(document_id) is not None:
            return document
        return document.model_copy(update={"metadata": {**document.metadata, _ID_METADATA: document_id}})

    def from_stored(self, document: Document) -> Document:
        """Return the document with its own id and without the metadata that was added."""
        added = (*_ADDED_METADATA, _ID_METADATA)
        metadata = {name: value for name, value in document.metadata.items() if name not in added}
        return Document(id=self._id(document), page_content=document.page_content, metadata=metadata)

    def passage(self, document: Document) -> DocumentPassage:
        """Convert a document to a passage, with the id that it was added with, or that of its point."""
        return document_to_passage(document, self._id(document))

    def _id(self, document: Document) -> str | None:
        stored_id = document.metadata.get(_ID_METADATA, document.metadata.get("_id", document.id))
        return None if stored_id is None else self.canonical_id(str(stored_id))

    def check_hybrid(self) -> None:
        """Check the store's retrieval mode."""
        if self.vectorstore.retrieval_mode.value != "hybrid":
            raise ConfigurationError(
                "keyword_search='store' needs QdrantVectorStore(retrieval_mode=RetrievalMode.HYBRID, "
                f"sparse_embedding=…), got {self.vectorstore.retrieval_mode}"
            )

    def fetch(self, ids: Sequence[str], where: Any) -> list[DocumentPassage]:
        if not ids:
            return []
        from qdrant_client import models

        has_id = models.HasIdCondition(has_id=[self.to_store_id(i) for i in ids])
        scroll_filter = models.Filter(must=[has_id, where] if where is not None else [has_id])
        points, _ = self.vectorstore.client.scroll(
            self.vectorstore.collection_name, scroll_filter=scroll_filter, limit=len(ids), with_payload=True
        )
        return self._read(points)

    def list_passages(self) -> Iterator[DocumentPassage]:
        """Yield all passages of the store, page by page."""
        offset = None
        while True:
            points, offset = self.vectorstore.client.scroll(
                self.vectorstore.collection_name, limit=PAGE_SIZE, offset=offset, with_payload=True
            )
            yield from self._read(points)
            if offset is None:
                return

    def _stored_vectors(self, ids: Sequence[str]) -> Mapping[str, FloatArray]:
        points = self.vectorstore.client.retrieve(
            self.vectorstore.collection_name, [self.to_store_id(i) for i in ids], with_payload=False, with_vectors=True
        )
        return read_point_vectors(points, {str(self.to_store_id(i)): i for i in ids}, self.vectorstore.vector_name)

    def size(self) -> int:
        return int(self.vectorstore.client.count(self.vectorstore.collection_name, exact=True).count)

    def _read(self, points: Sequence[Any]) -> list[DocumentPassage]:
        store = self.vectorstore
        names = (store.collection_name, store.content_payload_key, store.metadata_payload_key)
        return [self.passage(store._document_from_point(point, *names)) for point in points]


def _point_id(document_id: str) -> int | str | None:
    """Return the point id that a document id is, or None if it is neither a number nor a UUID."""
    if document_id.isascii() and document_id.isdecimal() and len(document_id) <= len(str(_MAX_POINT_ID)):
        number = int(document_id)
        return number if number <= _MAX_POINT_ID and str(number) == document_id else None
    try:
        return str(uuid.UUID(document_id))
    except ValueError:
        return None
