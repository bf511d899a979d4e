"""MeVe for LlamaIndex: verified retrieval as a postprocessor, retriever, query engine or tool; memory for chats.

Importing this loads neither models nor torch; what a name needs is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from meve.integrations._options import lazily

if TYPE_CHECKING:
    from llama_index_meve.chat_memory import MeVeMemory
    from llama_index_meve.chat_store import MeVeChatStore
    from llama_index_meve.dialogue import MeVeDialogueBlock, dialogue_of
    from llama_index_meve.embedding import MeVeEmbedding
    from llama_index_meve.engines import create_meve_tool, meve_query_engine
    from llama_index_meve.memory_block import MeVeMemoryBlock
    from llama_index_meve.postprocessor import MeVePostprocessor
    from llama_index_meve.retriever import MeVeRetriever

_WHERE = {
    "MeVeChatStore": "chat_store",
    "MeVeDialogueBlock": "dialogue",
    "MeVeEmbedding": "embedding",
    "MeVeMemory": "chat_memory",
    "MeVeMemoryBlock": "memory_block",
    "MeVePostprocessor": "postprocessor",
    "MeVeRetriever": "retriever",
    "create_meve_tool": "engines",
    "dialogue_of": "dialogue",
    "meve_query_engine": "engines",
}

__all__ = [
    "MeVeChatStore",
    "MeVeDialogueBlock",
    "MeVeEmbedding",
    "MeVeMemory",
    "MeVeMemoryBlock",
    "MeVePostprocessor",
    "MeVeRetriever",
    "create_meve_tool",
    "dialogue_of",
    "meve_query_engine",
]


__getattr__ = lazily("llama_index_meve", _WHERE, needs="llama_index.core", extra="llama-index")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
