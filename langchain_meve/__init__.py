"""MeVe for LangChain: verified retrieval, and governed memory for agents.

Importing the package loads no models; each name loads what it needs on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.compressor import MeVeCompressor
    from langchain_meve.dialogue_runnable import MeVeSmallContext, dialogue_from_messages
    from langchain_meve.embeddings import MeVeEmbeddings
    from langchain_meve.graph_store._tenancy import NamespaceError
    from langchain_meve.graph_store.store import MeVeStore
    from langchain_meve.history_retriever import MeVeHistoryRetriever
    from langchain_meve.memory_middleware import MeVeMemoryMiddleware
    from langchain_meve.memory_router import MeVeMemoryRouter
    from langchain_meve.memory_tools import create_memory_tools
    from langchain_meve.model_adapters import LangChainEmbedder, LangChainReranker, LangChainVerifier
    from langchain_meve.retriever import MeVeRetriever
    from langchain_meve.retriever_tool import create_meve_tool
    from langchain_meve.vectorstore import MeVeVectorStore

_MODULES = {
    "LangChainEmbedder": "model_adapters",
    "LangChainReranker": "model_adapters",
    "LangChainVerifier": "model_adapters",
    "MeVeCompressor": "compressor",
    "MeVeEmbeddings": "embeddings",
    "MeVeHistoryRetriever": "history_retriever",
    "MeVeMemoryMiddleware": "memory_middleware",
    "MeVeMemoryRouter": "memory_router",
    "MeVeRetriever": "retriever",
    "MeVeSmallContext": "dialogue_runnable",
    "MeVeStore": "graph_store.store",
    "MeVeVectorStore": "vectorstore",
    "NamespaceError": "graph_store._tenancy",
    "create_memory_tools": "memory_tools",
    "create_meve_tool": "retriever_tool",
    "dialogue_from_messages": "dialogue_runnable",
}
_EXTRAS = {
    "MeVeMemoryMiddleware": ("langchain", "langchain-agents"),
    "MeVeStore": ("langgraph", "langgraph"),
    "NamespaceError": ("langgraph", "langgraph"),
}
"""By name: the package that it needs beyond LangChain's core, and the extra that installs it."""

__all__ = [
    "LangChainEmbedder",
    "LangChainReranker",
    "LangChainVerifier",
    "MeVeCompressor",
    "MeVeEmbeddings",
    "MeVeHistoryRetriever",
    "MeVeMemoryMiddleware",
    "MeVeMemoryRouter",
    "MeVeRetriever",
    "MeVeSmallContext",
    "MeVeStore",
    "MeVeVectorStore",
    "NamespaceError",
    "create_memory_tools",
    "create_meve_tool",
    "dialogue_from_messages",
]


def __getattr__(name: str) -> Any:
    from meve.integrations._lazy_exports import lazy_exports  # here, since it brings numpy

    needs, extra = _EXTRAS.get(name, ("langchain_core", "langchain"))
    return lazy_exports("langchain_meve", _MODULES, needs=needs, extra=extra)(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
