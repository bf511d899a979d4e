"""Governed memory for LangChain's older chains. New agents take the middleware.

Both base classes are deprecated by LangChain, and go with its version 2; `docs/langchain-memory.md` tells how to move.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.classic.chain_memory import MeVeMemory
    from langchain_meve.classic.chat_message_history import MeVeChatMessageHistory

_WHERE = {"MeVeChatMessageHistory": "chat_message_history", "MeVeMemory": "chain_memory"}

__all__ = ["MeVeChatMessageHistory", "MeVeMemory"]


def __getattr__(name: str) -> Any:
    from meve.integrations._options import lazily  # here, since it brings numpy

    needs = "langchain_classic" if name == "MeVeMemory" else "langchain_core"
    return lazily("langchain_meve.classic", _WHERE, needs=needs, extra="langchain-classic")(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
