"""MeVe for LangChain: verified retrieval, and governed memory for agents.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.compressor import MeVeCompressor
    from langchain_meve.dialogue import MeVeSmallContext, dialogue_of
    from langchain_meve.embeddings import MeVeEmbeddings
    from langchain_meve.graph_store.store import MeVeStore
    from langchain_meve.memory_middleware import MeVeMemoryMiddleware
    from langchain_meve.memory_tools import create_memory_tools
    from langchain_meve.model_adapters import LangChainEmbedder, LangChainVerifier
    from langchain_meve.retriever import MeVeRetriever
    from langchain_meve.retriever_tool import create_meve_tool
    from langchain_meve.vectorstore import MeVeVectorStore

_WHERE = {
    "LangChainEmbedder": "model_adapters",
    "LangChainVerifier": "model_adapters",
    "MeVeCompressor": "compressor",
    "MeVeEmbeddings": "embeddings",
    "MeVeMemoryMiddleware": "memory_middleware",
    "MeVeRetriever": "retriever",
    "MeVeSmallContext": "dialogue",
    "MeVeStore": "graph_store.store",
    "MeVeVectorStore": "vectorstore",
    "create_memory_tools": "memory_tools",
    "create_meve_tool": "retriever_tool",
    "dialogue_of": "dialogue",
}
_NEEDS = {"MeVeStore": ("langgraph", "langgraph"), "MeVeMemoryMiddleware": ("langchain", "langchain-agents")}
"""What a name needs beyond LangChain's core, and the extra that installs it."""

__all__ = [
    "LangChainEmbedder",
    "LangChainVerifier",
    "MeVeCompressor",
    "MeVeEmbeddings",
    "MeVeMemoryMiddleware",
    "MeVeRetriever",
    "MeVeSmallContext",
    "MeVeStore",
    "MeVeVectorStore",
    "create_memory_tools",
    "create_meve_tool",
    "dialogue_of",
]


def __getattr__(name: str) -> Any:
    from meve.integrations._options import lazily  # here, since it brings numpy

    needs, extra = _NEEDS.get(name, ("langchain_core", "langchain"))
    return lazily("langchain_meve", _WHERE, needs=needs, extra=extra)(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
