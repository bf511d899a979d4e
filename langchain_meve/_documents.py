"""Convert LangChain documents to passages, and retrieved passages back to documents."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from meve.errors import PassageError
from meve.integrations._metadata import copy_metadata, json_metadata
from meve.integrations._passage_ids import tell_apart
from meve.pipeline.context import Context
from meve.types import Passage

_CONTENT_ID_NAMESPACE = uuid.UUID("6c1d9b36-9a0e-4d0b-8a53-5e2f8f9a3c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPassage(Passage):
    """A passage with a copy of the document that it was made from."""

    document: Document


class RetrievedDocuments(list[Document]):
    """A list of retrieved documents that also holds the retrieval's context and trace."""

    def __init__(self, documents: Iterable[Document] = (), context: Context | None = None) -> None:
        super().__init__(documents)
        self.context = context


def document_to_passage(document: Document, store_id: str | None = None) -> DocumentPassage:
    """Convert a document to a passage; filters see the metadata that JSON can hold.

    A document without an id gets an internal one, hashed from text and source; it is returned without.

    Args:
        document: copied, so later changes to it have no effect.
        store_id: the id in the vector store, if it differs from the document's own.
    """
    document_id = store_id or document.id
    metadata = copy_metadata(document.metadata)
    return DocumentPassage(
        id=document_id or content_id(document),
        text=document.page_content,
        metadata=json_metadata(metadata),
        document=Document(id=document_id, page_content=document.page_content, metadata=metadata),
    )


def documents_to_passages(documents: Iterable[Document]) -> list[DocumentPassage]:
    """Convert the documents that have text; of equal ids the first counts."""
    passages: dict[str, DocumentPassage] = {}
    for passage in _read_passages(documents):
        passages.setdefault(passage.id, passage)
    return list(passages.values())


def found_passages(documents: Iterable[Document]) -> list[DocumentPassage]:
    """Convert the documents that have text, as retrievers found them; equal ids may stand for different texts."""
    return tell_apart(_read_passages(documents))


def _read_passages(documents: Iterable[Document]) -> Iterator[DocumentPassage]:
    for document in documents:
        if not isinstance(document, Document):
            raise PassageError(f"documents must be Documents of LangChain, got {document!r:.60}: texts need from_texts")
        if document.page_content.strip():
            yield document_to_passage(document)


def content_id(document: Document) -> str:
    """Return an id hashed from the document's source and text."""
    return str(uuid.uuid5(_CONTENT_ID_NAMESPACE, f"{document.metadata.get('source', '')}\0{document.page_content}"))


def context_to_documents(context: Context) -> RetrievedDocuments:
    """Return the passages of a context, in its order, as copies of the documents that they were made from.

    A passage of an index that wasn't made from a document has its title before its text, as in the context's text.

    Added metadata keys: `relevance_score` (the probability that it answers, in [0, 1]; a cosine in modes without
    verification; None if it was not scored), `meve_verified`, `meve_source` (`dense`, `lexical`, `hybrid`, `fallback`,
    `fill`, `follow`, or `given`), `meve_rank` (from 1) and `meve_tokens`.
    """
    documents = RetrievedDocuments(context=context)
    for rank, retrieved in enumerate(context.passages, start=1):
        passage = retrieved.passage
        metadata: Mapping[str, Any] = passage.metadata
        document_id: str | None = passage.id
        text = passage.content if type(passage) is Passage else passage.text  # the title of a turn is its speaker
        if isinstance(passage, DocumentPassage):
            metadata, document_id = passage.document.metadata, passage.document.id
        result_metadata = {
            "relevance_score": None if retrieved.score is None else float(retrieved.score),
            "meve_verified": retrieved.verified,
            "meve_source": retrieved.origin,
            "meve_rank": rank,
            "meve_tokens": retrieved.tokens,
        }
        metadata = {**copy_metadata(metadata), **result_metadata}
        documents.append(Document(id=document_id, page_content=text, metadata=metadata))
    return documents
