"""MeVe for LlamaIndex: verified retrieval as a postprocessor, retriever, query engine or tool; memory for chats.

Importing this loads neither models nor torch: each name is loaded on first use.
"""

from typing import TYPE_CHECKING

from meve.integrations._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from llama_index_meve.chat_memory import MeVeMemory
    from llama_index_meve.chat_store import MeVeChatStore
    from llama_index_meve.conversation_retriever import MeVeConversationBlock, MeVeConversationRetriever
    from llama_index_meve.dialogue_block import MeVeDialogueBlock, dialogue_from_messages
    from llama_index_meve.embedding import MeVeEmbedding
    from llama_index_meve.memory_block import MeVeMemoryBlock
    from llama_index_meve.memory_query_engine import MeVeMemoryQueryEngine
    from llama_index_meve.memory_tools import create_memory_tools
    from llama_index_meve.postprocessor import MeVePostprocessor
    from llama_index_meve.query_engine import create_meve_query_engine
    from llama_index_meve.reranker import LlamaIndexReranker
    from llama_index_meve.retriever import MeVeRetriever
    from llama_index_meve.tool import create_meve_tool

_MODULES = {
    "LlamaIndexReranker": "reranker",
    "MeVeChatStore": "chat_store",
    "MeVeConversationBlock": "conversation_retriever",
    "MeVeConversationRetriever": "conversation_retriever",
    "MeVeDialogueBlock": "dialogue_block",
    "MeVeEmbedding": "embedding",
    "MeVeMemory": "chat_memory",
    "MeVeMemoryBlock": "memory_block",
    "MeVeMemoryQueryEngine": "memory_query_engine",
    "MeVePostprocessor": "postprocessor",
    "MeVeRetriever": "retriever",
    "create_memory_tools": "memory_tools",
    "create_meve_query_engine": "query_engine",
    "create_meve_tool": "tool",
    "dialogue_from_messages": "dialogue_block",
}

__all__ = [
    "LlamaIndexReranker",
    "MeVeChatStore",
    "MeVeConversationBlock",
    "MeVeConversationRetriever",
    "MeVeDialogueBlock",
    "MeVeEmbedding",
    "MeVeMemory",
    "MeVeMemoryBlock",
    "MeVeMemoryQueryEngine",
    "MeVePostprocessor",
    "MeVeRetriever",
    "create_memory_tools",
    "create_meve_query_engine",
    "create_meve_tool",
    "dialogue_from_messages",
]


__getattr__ = lazy_exports("llama_index_meve", _MODULES, needs="llama_index.core", extra="llama-index")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
