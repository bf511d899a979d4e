"""LangChain's documents as passages, and back: copies that keep id and metadata, and say why they were let in."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from meve.integrations._options import copied, plain_metadata
from meve.pipeline.context import Context
from meve.types import Passage

_SPACE = uuid.UUID("6c1d9b36-9a0e-4d0b-8a53-5e2f8f9a3c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPassage(Passage):
    """A passage that remembers the document that it was made of, as it was then."""

    document: Document


class Documents(list[Document]):
    """Documents that were found, with the account of how."""

    def __init__(self, documents: Iterable[Document] = (), context: Context | None = None) -> None:
        super().__init__(documents)
        self.context = context


def as_passage(document: Document, store_id: str | None = None) -> DocumentPassage:
    """A document as a passage; its metadata as far as JSON can hold it, which is what filters go by.

    One without an id gets one of its text and source, for MeVe alone: it comes back without.

    Args:
        document: it may change afterwards.
        store_id: the id by which a store knows it, where that isn't the document's own.
    """
    known = store_id or document.id
    metadata = copied(document.metadata)
    return DocumentPassage(
        id=known or own_id(document),
        text=document.page_content,
        metadata=plain_metadata(metadata),
        document=Document(id=known, page_content=document.page_content, metadata=metadata),
    )


def as_passages(documents: Iterable[Document]) -> list[DocumentPassage]:
    """Documents that have text, one for each id: the first."""
    made: dict[str, DocumentPassage] = {}
    for document in documents:
        if document.page_content.strip():
            passage = as_passage(document)
            made.setdefault(passage.id, passage)
    return list(made.values())


def own_id(document: Document) -> str:
    """An id of its source and text."""
    return str(uuid.uuid5(_SPACE, f"{document.metadata.get('source', '')}\0{document.page_content}"))


def as_documents(context: Context) -> Documents:
    """The passages of a context, best first, as copies of the documents that they were made of.

    Each has the keys `relevance_score` (the probability that it answers, in [0, 1]; a cosine in modes that verify
    nothing), `meve_verified`, `meve_source` (`dense`, `lexical`, `fallback`, `follow`, or `given`), `meve_rank` (from
    1) and `meve_tokens`.
    """
    made = Documents(context=context)
    for rank, found in enumerate(context.passages, start=1):
        passage = found.passage
        kept: Mapping[str, Any] = passage.metadata
        known: str | None = passage.id
        if isinstance(passage, DocumentPassage):
            kept, known = passage.document.metadata, passage.document.id
        account = {
            "relevance_score": None if found.score is None else float(found.score),
            "meve_verified": found.verified,
            "meve_source": found.origin,
            "meve_rank": rank,
            "meve_tokens": found.tokens,
        }
        made.append(Document(id=known, page_content=passage.text, metadata={**copied(kept), **account}))
    return made
