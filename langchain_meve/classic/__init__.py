"""Governed memory for LangChain's older chains. New agents take the middleware.

LangChain deprecates both base classes and removes them in version 2; `docs/langchain-memory.md` says how to migrate.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_meve.classic.chain_memory import MeVeMemory
    from langchain_meve.classic.chat_message_history import MeVeChatMessageHistory

_MODULES = {"MeVeChatMessageHistory": "chat_message_history", "MeVeMemory": "chain_memory"}

__all__ = ["MeVeChatMessageHistory", "MeVeMemory"]


def __getattr__(name: str) -> Any:
    from meve.integrations._lazy_exports import lazy_exports  # here, since it brings numpy

    needs = "langchain_classic" if name == "MeVeMemory" else "langchain_core"
    return lazy_exports("langchain_meve.classic", _MODULES, needs=needs, extra="langchain-classic")(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
