"""MeVe as a LangChain user has it: a retriever over his FAISS store, asked through LangChain.

meve bench quality --data DATA --peer benchmarks.peers.langchain_ours:over_faiss
"""

from collections.abc import Callable, Sequence

from langchain_core.documents import Document

from benchmarks.peers.langchain_stock import FAISS, SharedEmbeddings
from langchain_meve import MeVeRetriever
from meve.evaluation.types import Parts
from meve.types import Passage


def over_faiss(passages: Sequence[Passage], parts: Parts) -> Callable[[str], Sequence[Passage]]:
    """Phase 1 is langchain-community's FAISS, exact, over the shared embedder."""
    known = {p.id: p for p in passages}
    documents = [Document(p.content, id=p.id) for p in passages]
    store = FAISS.from_documents(documents, SharedEmbeddings(parts.embedder), ids=list(known))
    retriever = MeVeRetriever.from_vectorstore(
        store, config=parts.config, embedder=parts.embedder, verifier=parts.verifier, tokens=parts.tokens
    )
    return lambda query: [known[str(document.id)] for document in retriever.invoke(query)]
