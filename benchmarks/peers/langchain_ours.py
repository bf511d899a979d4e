"""MeVe as LangChain users have it: a retriever over their FAISS store, invoked through LangChain.

meve bench quality --data DATA --peer benchmarks.peers.langchain_ours:over_faiss
"""

from collections.abc import Sequence
from typing import Unpack

from langchain_core.documents import Document

from benchmarks.peers.langchain_stock import FAISS, Retrieve, SharedEmbeddings
from langchain_meve import MeVeRetriever
from meve.evaluation.types import SharedComponents
from meve.pipeline.config import Overrides
from meve.types import Passage


def over_faiss(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Retrieve over langchain-community's exact FAISS store with the shared embedder; all settings are the defaults."""
    return _over_store(passages, components)


def few_sentences(passages: Sequence[Passage], components: SharedComponents) -> Retrieve:
    """Retrieve for short prompts: ten candidates per source, and only the sentences with evidence."""
    return _over_store(passages, components, candidates=10, packing="sentences")


def _over_store(passages: Sequence[Passage], components: SharedComponents, **settings: Unpack[Overrides]) -> Retrieve:
    documents = [Document(p.content, id=p.id) for p in passages]
    store = FAISS.from_documents(documents, SharedEmbeddings(components.embedder), ids=[p.id for p in passages])
    retriever = MeVeRetriever.from_vectorstore(
        store,
        config=components.config.override(**settings),
        embedder=components.embedder,
        verifier=components.verifier,
        tokens=components.tokens,
    )
    return lambda query: [Passage(id=str(d.id), text=d.page_content) for d in retriever.invoke(query)]
