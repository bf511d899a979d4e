"""Put `MeVeMemory` and `MeVeChatStore` in place of LlamaIndex's memories and chat store."""

import importlib
import inspect
import pkgutil

from llama_index.core import chat_engine, memory
from llama_index.core.agent.workflow import base_agent, multi_agent_workflow
from llama_index.core.memory import memory as memory_module
from llama_index.core.storage.chat_store import sql
from upstream_plugin import count_calls, open_memory

from llama_index_meve import MeVeChatStore, MeVeMemory


class SwappedMemory(MeVeMemory):
    """Takes the arguments that the framework gives its own memory: a history and a limit."""

    @classmethod
    def from_defaults(cls, chat_history=None, llm=None, token_limit=None, **options):
        limit = {} if token_limit is None else {"token_limit": token_limit}
        return super().from_defaults(open_memory(), "upstream", chat_history, **limit)


class SwappedStore(MeVeChatStore):
    """Takes and ignores the table name and address that the framework gives its own store."""

    table_name: str = ""
    async_database_uri: str | None = None
    db_schema: str | None = None

    def __init__(self, table_name, async_database_uri=None, async_engine=None, db_data=None, db_schema=None):
        super().__init__(open_memory(), user_id="upstream")
        result = {"table_name": table_name, "async_database_uri": async_database_uri, "db_schema": db_schema}
        self.__dict__.update(result)  # frozen


def swap_classes():
    """Replace the classes that chat engines, agents, memory and tests create by default."""
    count_calls(SwappedMemory, [f"{a}{name}" for a in ("", "a") for name in ("get", "get_all", "put", "set", "reset")])
    count_calls(
        SwappedStore, [name for name, _ in inspect.getmembers(sql.AsyncDBChatStore, inspect.iscoroutinefunction)]
    )
    for info in pkgutil.iter_modules(chat_engine.__path__, chat_engine.__name__ + "."):
        module = importlib.import_module(info.name)
        for value in list(vars(module).values()):
            factory = getattr(value, "from_defaults", None) if inspect.isclass(value) else None
            if factory is not None and value.__module__ == info.name:
                replace_default_memory(factory.__func__)
        if getattr(module, "Memory", None) is memory.Memory:
            module.Memory = SwappedMemory
    for module in (base_agent, multi_agent_workflow):
        module.ChatMemoryBuffer = SwappedMemory
    memory.ChatMemoryBuffer = SwappedMemory  # imported by tests
    for module in (memory_module, sql):
        module.SQLAlchemyChatStore = SwappedStore


def replace_default_memory(function):
    new = [SwappedMemory if each is memory.Memory else each for each in function.__defaults__ or ()]
    function.__defaults__ = tuple(new) or None
