"""LangChain's documents as passages, and back: copies that keep id and metadata, and say why they were let in."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from meve.context import Context
from meve.skins import plain_metadata
from meve.types import Passage

_SPACE = uuid.UUID("6c1d9b36-9a0e-4d0b-8a53-5e2f8f9a3c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPassage(Passage):
    """A passage that remembers the document that it was made of."""

    document: Document


def as_passage(document: Document, passage_id: str | None = None) -> DocumentPassage:
    """A document as a passage; its metadata as far as JSON can hold it, which is what filters go by.

    Without an id it gets one of its text and source, so that the same document has the same one.
    """
    return DocumentPassage(
        id=passage_id or document.id or own_id(document),
        text=document.page_content,
        metadata=plain_metadata(document.metadata),
        document=document,
    )


def as_passages(documents: Sequence[Document]) -> list[DocumentPassage]:
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


def as_documents(context: Context) -> list[Document]:
    """The passages of a context, best first, as copies of the documents that they were made of.

    Each has the keys `relevance_score` (the probability that it answers, in [0, 1]), `meve_verified`, `meve_source`
    (`dense`, `lexical`, `fallback`, `follow`, or `given`), `meve_rank` (from 1) and `meve_tokens`.
    """
    made = []
    for rank, found in enumerate(context.passages, start=1):
        passage = found.passage
        kept: Mapping[str, Any] = passage.metadata
        if isinstance(passage, DocumentPassage):
            kept = passage.document.metadata
        account = {
            "relevance_score": None if found.score is None else float(found.score),
            "meve_verified": found.verified,
            "meve_source": found.origin,
            "meve_rank": rank,
            "meve_tokens": found.tokens,
        }
        made.append(Document(id=passage.id, page_content=passage.text, metadata={**kept, **account}))
    return made
