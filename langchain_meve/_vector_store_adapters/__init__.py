"""LangChain's vector stores as stores for the five phases: how each searches, filters, counts and lists."""

from langchain_core.vectorstores import VectorStore

from langchain_meve._vector_store_adapters.base import AnyStore
from langchain_meve._vector_store_adapters.chroma import ChromaDb
from langchain_meve._vector_store_adapters.faiss import Faiss
from langchain_meve._vector_store_adapters.in_memory import InMemory
from langchain_meve._vector_store_adapters.qdrant import Qdrant

KNOWN: dict[str, type[AnyStore]] = {
    "langchain_core.InMemoryVectorStore": InMemory,
    "langchain_community.FAISS": Faiss,
    "langchain_chroma.Chroma": ChromaDb,
    "langchain_qdrant.QdrantVectorStore": Qdrant,
}


def store_of(vectorstore: VectorStore, filter_keyword: str | None = None) -> AnyStore:
    """The way to a vector store: one of its own for those that are known here, and else what all have in common."""
    inner = getattr(vectorstore, "inner", None)  # a MeVeVectorStore goes around another
    if isinstance(inner, VectorStore) and hasattr(vectorstore, "as_verified_retriever"):
        return store_of(inner, filter_keyword)
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(vectorstore).__mro__}
    for name, made in KNOWN.items():
        if name in kinds:
            return made(vectorstore)
    return AnyStore(vectorstore, filter_keyword)


__all__ = ["KNOWN", "AnyStore", "ChromaDb", "Faiss", "InMemory", "Qdrant", "store_of"]
