"""Put `MeVeStore` in place of LangGraph's InMemoryStore."""

from uuid import uuid4

import langgraph.store.memory
from langgraph.store.base import ensure_embeddings
from upstream_plugin import count_calls, open_memory, shared_memory

from langchain_meve import MeVeStore
from langchain_meve.model_adapters import LangChainEmbedder


class SwappedStore(MeVeStore):
    """Takes the index settings that the framework gives its own store; one owner has all namespaces."""

    def __init__(self, *, index=None):
        memory = open_memory(LangChainEmbedder(ensure_embeddings(index["embed"]))) if index else shared_memory()
        super().__init__(memory, user_id=uuid4().hex, fields=(index or {}).get("fields") or ["$"])


def swap_classes():
    """Replace the class that tests import."""
    shared_memory()
    count_calls(SwappedStore, ["batch", "abatch"])
    langgraph.store.memory.InMemoryStore = SwappedStore
