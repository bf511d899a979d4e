"""Put `MeVeStore` in place of LangGraph's InMemoryStore."""

import langgraph.store.memory
from langgraph.store.base import ensure_embeddings
from upstream_plugin import count_calls, open_memory

from langchain_meve import MeVeStore
from langchain_meve.model_adapters import LangChainEmbedder


class SwappedStore(MeVeStore):
    """Takes the index settings that the framework gives its own store; one owner has all namespaces."""

    def __init__(self, *, index=None):
        embedder = LangChainEmbedder(ensure_embeddings(index["embed"])) if index else None
        fields = (index or {}).get("fields") or ["$"]
        super().__init__(open_memory(embedder), user_id="upstream", fields=fields)


def swap_classes():
    """Replace the class that tests import."""
    count_calls(SwappedStore, ["batch", "abatch"])
    langgraph.store.memory.InMemoryStore = SwappedStore
