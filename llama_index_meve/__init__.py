"""MeVe for LlamaIndex: verified retrieval as a postprocessor, a retriever, a query engine or a tool.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from meve.errors import missing_extra

if TYPE_CHECKING:
    from llama_index_meve.embedding import MeVeEmbedding
    from llama_index_meve.engines import create_meve_tool, meve_query_engine
    from llama_index_meve.postprocessor import MeVePostprocessor
    from llama_index_meve.retriever import MeVeRetriever

_WHERE = {
    "MeVeEmbedding": "embedding",
    "MeVePostprocessor": "postprocessor",
    "MeVeRetriever": "retriever",
    "create_meve_tool": "engines",
    "meve_query_engine": "engines",
}

__all__ = ["MeVeEmbedding", "MeVePostprocessor", "MeVeRetriever", "create_meve_tool", "meve_query_engine"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'llama_index_meve' has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        module = import_module(f"llama_index_meve.{_WHERE[name]}")
    except ModuleNotFoundError as cause:
        if (cause.name or "").partition(".")[0] != "llama_index":
            raise
        raise missing_extra("llama_index.core", "llama-index", name) from cause
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
