"""MeVe for LangChain: verified retrieval, and governed memory for agents.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.compressor import MeVeCompressor
    from langchain_meve.embeddings import MeVeEmbeddings
    from langchain_meve.memory_tools import create_memory_tools
    from langchain_meve.middleware import MeVeMemoryMiddleware
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
    "create_memory_tools": "memory_tools",
    "create_meve_tool": "tool",
}
_AGENTS = {"MeVeMemoryMiddleware": "middleware"}

__all__ = [
    "LangChainEmbedder",
    "LangChainVerifier",
    "MeVeCompressor",
    "MeVeEmbeddings",
    "MeVeMemoryMiddleware",
    "MeVeRetriever",
    "MeVeVectorStore",
    "create_memory_tools",
    "create_meve_tool",
]


def __getattr__(name: str) -> Any:
    from meve.skins import lazily  # here, since it brings numpy

    if name in _AGENTS:
        return lazily("langchain_meve", _AGENTS, needs="langchain", extra="langchain-agents")(name)
    return lazily("langchain_meve", _WHERE, needs="langchain_core", extra="langchain")(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
