"""MeVe as a LangChain user has it: a retriever over his FAISS store, asked through LangChain.

meve bench quality --data DATA --peer benchmarks.peers.langchain_ours:over_faiss
"""

from collections.abc import Callable, Sequence
from typing import Unpack

from langchain_core.documents import Document

from benchmarks.peers.langchain_stock import FAISS, SharedEmbeddings
from langchain_meve import MeVeRetriever
from meve.evaluation.types import SharedComponents
from meve.pipeline.config import Overrides
from meve.types import Passage

Ask = Callable[[str], Sequence[Passage]]


def over_faiss(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """Phase 1 is langchain-community's FAISS, exact, over the shared embedder; all settings are the defaults."""
    return _asking(_retriever(passages, parts))


def few_sentences(passages: Sequence[Passage], parts: SharedComponents) -> Ask:
    """The same, set for short prompts: ten candidates a source, of each passage the sentences that carry evidence."""
    return _asking(_retriever(passages, parts, candidates=10, packing="sentences"))


def _retriever(passages: Sequence[Passage], parts: SharedComponents, **settings: Unpack[Overrides]) -> MeVeRetriever:
    documents = [Document(p.content, id=p.id) for p in passages]
    store = FAISS.from_documents(documents, SharedEmbeddings(parts.embedder), ids=[p.id for p in passages])
    return MeVeRetriever.from_vectorstore(
        store,
        config=parts.config.override(**settings),
        embedder=parts.embedder,
        verifier=parts.verifier,
        tokens=parts.tokens,
    )


def _asking(retriever: MeVeRetriever) -> Ask:
    return lambda query: [Passage(id=str(d.id), text=d.page_content) for d in retriever.invoke(query)]
