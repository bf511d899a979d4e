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


_TRUSTING = "what is no number becomes null"
_ONE_CONNECTION = "callers share a connection, and each one's commits and rollbacks are the others'"
_ROWS = "it deletes by the number of a row, which no call tells"

SQLALCHEMY_FAILS = {
    "images_of_old_come_back_once": "it can't read back what it wrote, nor anything beside it",
    "a_file_may_be_gone_by_now": "it can't read back what it wrote, nor anything beside it",
    "what_cannot_be_kept_is_refused": _TRUSTING,
    "nothing_is_added_of_nothing": "it writes a row of nothing, which its table refuses",
    "what_cannot_be_set_leaves_what_was": "it has deleted before it looks at what is to be set",
    "a_message_is_deleted_by_its_position": _ROWS,
    "where_no_message_is_none_is_deleted[2]": _ROWS,
    "less_than_nothing_deletes_nothing": "a negative number deletes all",
    "many_writers_lose_nothing": "the first callers look for its table before it is made",
    "what_is_added_at_once_stays_together": _ONE_CONNECTION,
    "of_many_that_set_one_is_kept_whole": _ONE_CONNECTION,
    "nobody_takes_what_another_took": "it reads, and deletes later",
    "nobody_archives_what_another_did": "it reads, and archives later",
    "it_stands_under_the_frameworks_memory": _ONE_CONNECTION,
}
SIMPLE_FAILS = {
    "what_cannot_be_kept_is_refused": "it keeps anything, and fails when it is saved",
    "what_is_returned_is_a_copy": "it is what is stored",
    "what_was_added_is_a_copy": "it is what is stored",
    "an_emptied_session_is_no_key": "an emptied session stays a key",
    "what_cannot_be_set_leaves_what_was": "it keeps anything, and fails when it is saved",
    "where_no_message_is_none_is_deleted[-1]": "it counts from the end",
    "what_is_added_at_once_stays_together": "it adds one message at a time",
}
