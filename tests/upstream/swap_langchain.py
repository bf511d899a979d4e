"""Put our classes in place of LangChain's vector store, histories and chain memory, and of LangGraph's store."""

import importlib
from contextlib import suppress
from uuid import uuid4

import langchain_core.chat_history
import langchain_core.vectorstores
import langchain_core.vectorstores.in_memory
from upstream_plugin import count_calls, shared_memory

from langchain_meve import MeVeVectorStore
from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder

STOCK_VECTOR_STORE = langchain_core.vectorstores.InMemoryVectorStore


class SwappedVectorStore(MeVeVectorStore):
    """Wraps a stock store over the embeddings that the framework gives its own."""

    def __init__(self, embedding):
        parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
        super().__init__(STOCK_VECTOR_STORE(embedding), **parts)

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        new = cls(embedding)
        new.add_texts(texts, metadatas, **kwargs)
        return new

    @classmethod
    async def afrom_texts(cls, texts, embedding, metadatas=None, **kwargs):
        new = cls(embedding)
        await new.aadd_texts(texts, metadatas, **kwargs)
        return new

    @classmethod
    def load(cls, path, embedding):
        new = cls(embedding)
        stored = STOCK_VECTOR_STORE.load(path, embedding).store
        each = stored.values()
        new.add_texts([one["text"] for one in each], [one["metadata"] for one in each], ids=list(stored))
        return new

    @property
    def store(self):
        return self.inner.store

    def dump(self, path):
        self.inner.dump(path)


class SwappedHistory(MeVeChatMessageHistory):
    """Takes messages, as the stock history does."""

    def __init__(self, messages=()):
        super().__init__(shared_memory(), "upstream", uuid4().hex)
        self.add_messages(list(messages))

    def __eq__(self, other):
        return self.messages == other.messages


class SwappedMemory(MeVeMemory):
    """Takes the settings of a buffer, which ignores `k`, and holds all turns."""

    def __init__(self, k=None, **settings):
        fields = {"memory": shared_memory(), "user_id": "upstream", "turns": 1_000, "remember": None}
        super().__init__(**fields | settings)


def swap_classes():
    """Replace the classes that tests import."""
    shared_memory()
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
