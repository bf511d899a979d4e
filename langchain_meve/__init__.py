"""MeVe for LangChain: verified retrieval in place of a retriever, a compressor, a tool or a vector store.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from meve.errors import missing_extra

if TYPE_CHECKING:
    from langchain_meve.compressor import MeVeCompressor
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
    "MeVeVectorStore": "vectorstore",
    "create_meve_tool": "tool",
}

__all__ = [
    "LangChainEmbedder",
    "LangChainVerifier",
    "MeVeCompressor",
    "MeVeEmbeddings",
    "MeVeRetriever",
    "MeVeVectorStore",
    "create_meve_tool",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'langchain_meve' has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        module = import_module(f"langchain_meve.{_WHERE[name]}")
    except ModuleNotFoundError as cause:
        if (cause.name or "").partition(".")[0] != "langchain_core":
            raise
        raise missing_extra("langchain_core", "langchain", name) from cause
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
