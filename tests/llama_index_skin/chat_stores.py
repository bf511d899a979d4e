"""LlamaIndex's own chat stores as tests and measurements make them, and the rules that each of them breaks."""

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore


def sqlalchemy(uri="sqlite+aiosqlite:///:memory:"):
    return SQLAlchemyChatStore(table_name="messages", async_database_uri=uri)


async def dispose(store):
    if store._async_engine is not None:
        await store._async_engine.dispose()


class OldStore(AsyncDBChatStore):
    """The store of LlamaIndex's that agents' default memory has, as far as it does what newer ones must."""

    old: SimpleChatStore

    async def get_messages(self, key, status=None, limit=None, offset=None):
        found = (await self.old.aget_messages(key))[offset or 0 :]
        return found if limit is None else found[:limit]

    async def count_messages(self, key, status=None):
        return len(await self.old.aget_messages(key))

    async def add_message(self, key, message: ChatMessage, status=None):
        await self.old.async_add_message(key, message)

    async def add_messages(self, key, messages, status=None):
        for message in messages:
            await self.old.async_add_message(key, message)

    async def set_messages(self, key, messages, status=None):
        await self.old.aset_messages(key, messages)

    async def delete_message(self, key, idx):
        return await self.old.adelete_message(key, idx)

    async def delete_messages(self, key, status=None):
        await self.old.adelete_messages(key)

    async def delete_oldest_messages(self, key, n):
        return [await self.old.adelete_message(key, 0) for _ in range(min(n, await self.count_messages(key)))]

    async def archive_oldest_messages(self, key, n):
        raise NotImplementedError

    async def get_keys(self):
        return await self.old.aget_keys()


SQLALCHEMY_FAILS = {}
SIMPLE_FAILS = {}
