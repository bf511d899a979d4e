"""MeVe for LangChain: verified retrieval in place of a retriever, a compressor, a tool or a vector store.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.compressor import MeVeCompressor
    from langchain_meve.dialogue import MeVeSmallContext, dialogue_of
    from langchain_meve.embeddings import MeVeEmbeddings
    from langchain_meve.models import LangChainEmbedder, LangChainVerifier
    from langchain_meve.retriever import MeVeRetriever
    from langchain_meve.tool import create_meve_tool
    from langchain_meve.vectorstore import MeVeVectorStore

_WHERE = {
    "LangChainEmbedder": "models",
    "LangChainVerifier": "models",
    "MeVeCompressor": "compressor",
    "MeVeEmbeddings": "embeddings",
    "MeVeRetriever": "retriever",
    "MeVeSmallContext": "dialogue",
    "MeVeVectorStore": "vectorstore",
    "create_meve_tool": "tool",
    "dialogue_of": "dialogue",
}

__all__ = [
    "LangChainEmbedder",
    "LangChainVerifier",
    "MeVeCompressor",
    "MeVeEmbeddings",
    "MeVeRetriever",
    "MeVeSmallContext",
    "MeVeVectorStore",
    "create_meve_tool",
    "dialogue_of",
]


def __getattr__(name: str) -> Any:
    from meve.skins import lazily  # here, since it brings numpy

    return lazily("langchain_meve", _WHERE, needs="langchain_core", extra="langchain")(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
