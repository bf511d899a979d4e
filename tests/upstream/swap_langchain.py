"""Put our classes in place of LangChain's vector store, histories and chain memory, and of LangGraph's store."""

import importlib
from contextlib import suppress

import langchain_core.chat_history
import langchain_core.vectorstores
import langchain_core.vectorstores.in_memory
from upstream_plugin import count_calls, open_memory

from langchain_meve import MeVeVectorStore
from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

STOCK_VECTOR_STORE = langchain_core.vectorstores.InMemoryVectorStore


class SwappedVectorStore(MeVeVectorStore):
    """Wraps a stock store over the embeddings that the framework gives its own."""

    def __init__(self, embedding):
        parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
        super().__init__(STOCK_VECTOR_STORE(embedding), **parts)

    @property
    def store(self):
        return self.inner.store

    def dump(self, path):
        self.inner.dump(path)


class SwappedHistory(MeVeChatMessageHistory):
    """Takes messages, as the stock history does."""

    def __init__(self, messages=()):
        super().__init__(open_memory(), "upstream", "session")
        self.add_messages(list(messages))


class SwappedMemory(MeVeMemory):
    """Takes the settings of a buffer, and holds all turns."""

    def __init__(self, **settings):
        super().__init__(
            **{"memory": open_memory(), "user_id": "upstream", "turns": 1_000, "remember": None, **settings}
        )


def swap_classes():
    """Replace the classes that tests import."""
    count_calls(SwappedVectorStore, ["add_documents", "aadd_documents", "similarity_search", "delete", "adelete"])
    count_calls(SwappedHistory, ["add_messages", "aadd_messages", "aget_messages"])
    count_calls(SwappedMemory, ["load_memory_variables", "save_context"])
    for module in (langchain_core.vectorstores, langchain_core.vectorstores.in_memory):
        module.InMemoryVectorStore = SwappedVectorStore
    langchain_core.chat_history.InMemoryChatMessageHistory = SwappedHistory
    for name in ("langchain_classic.memory.buffer", "langchain_classic.memory"):
        with suppress(ImportError):
            importlib.import_module(name).ConversationBufferMemory = SwappedMemory
    with suppress(ImportError):
        importlib.import_module("swap_langgraph").swap_classes()
