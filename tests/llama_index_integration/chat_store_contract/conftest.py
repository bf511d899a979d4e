"""The chat stores under test: ours, and LlamaIndex's own with the tests that each fails."""

import aiosqlite
import pytest
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from llama_index_meve import MeVeChatStore
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder

_SHARED_CONNECTION = "concurrent callers share one connection and its transaction"
_ROW_NUMBER = "it deletes by row number, which no call returns"

_ANY_VALUE = "it accepts any value, and fails when it is saved"
_SAME_OBJECT = "it stores and returns the same object"

SQLALCHEMY_FAILS = {
    "legacy_images_in_kwargs_are_not_duplicated": "it can't read this message, nor others of the session",
    "message_naming_a_deleted_file_is_still_readable": "it can't read this message, nor others of the session",
    "unstorable_message_is_rejected_with_its_batch": "it stores NaN as null",
    "adding_no_messages_adds_nothing": "it inserts an empty row, which its table rejects",
    "failed_set_changes_nothing": "it deletes before it checks the new messages",
    "message_is_deleted_by_position_and_returned": _ROW_NUMBER,
    "deleting_at_an_invalid_position_returns_none[2]": _ROW_NUMBER,
    "negative_number_deletes_nothing": "a negative number deletes all messages",
    "concurrent_writers_lose_no_message": "the first callers use the table before it is created",
    "messages_added_together_stay_adjacent": _SHARED_CONNECTION,
    "concurrent_sets_keep_one_list_whole": _SHARED_CONNECTION,
    "concurrent_deletes_give_each_message_to_one_caller": "it reads and deletes in separate steps",
    "concurrent_archiving_gives_each_message_to_one_caller": "it reads and archives in separate steps",
    "concurrent_puts_through_llamaindex_memory_lose_no_message": _SHARED_CONNECTION,
}
"""Why a test, named without `test_`, must fail with LlamaIndex's SQLAlchemyChatStore."""
SIMPLE_FAILS = {
    "unstorable_message_is_rejected_with_its_batch": _ANY_VALUE,
    "changing_a_returned_message_does_not_change_the_store": _SAME_OBJECT,
    "changing_an_added_message_does_not_change_the_store": _SAME_OBJECT,
    "emptied_session_is_not_listed": "an emptied session stays listed",
    "failed_set_changes_nothing": _ANY_VALUE,
    "deleting_at_an_invalid_position_returns_none[-1]": "negative positions count from the end",
    "messages_added_together_stay_adjacent": "it adds one message at a time",
}
"""The same for LlamaIndex's SimpleChatStore."""


class AsyncSimpleChatStore(AsyncDBChatStore):
    """Adapt LlamaIndex's SimpleChatStore to the async store interface, as far as it can."""

    inner: SimpleChatStore

    async def get_messages(self, key, status=None, limit=None, offset=None):
        messages = (await self.inner.aget_messages(key))[offset or 0 :]
        return messages if limit is None else messages[:limit]

    async def count_messages(self, key, status=None):
        return len(await self.inner.aget_messages(key))

    async def add_message(self, key, message, status=None):
        await self.inner.async_add_message(key, message)

    async def add_messages(self, key, messages, status=None):
        for message in messages:
            await self.inner.async_add_message(key, message)

    async def set_messages(self, key, messages, status=None):
        await self.inner.aset_messages(key, messages)

    async def delete_message(self, key, idx):
        return await self.inner.adelete_message(key, idx)

    async def delete_messages(self, key, status=None):
        await self.inner.adelete_messages(key)

    async def delete_oldest_messages(self, key, n):
        return [await self.inner.adelete_message(key, 0) for _ in range(min(n, await self.count_messages(key)))]

    async def archive_oldest_messages(self, key, n):
        raise NotImplementedError

    async def get_keys(self):
        return await self.inner.aget_keys()


ARCHIVING_STORES = ["meve", "sqlalchemy"]


@pytest.fixture(params=[*ARCHIVING_STORES, "simple"])
async def store(request, file, monkeypatch):
    """A new and empty chat store."""
    if request.param == "meve":
        with GovernedMemory.open(file, embedder=WordEmbedder(), tokens=WordCounter()) as memory:
            yield MeVeChatStore(memory, user_id="alice")
        return
    name = request.node.originalname.removeprefix("test_")
    for known, reason in {"sqlalchemy": SQLALCHEMY_FAILS, "simple": SIMPLE_FAILS}[request.param].items():
        if known in (name, f"{name}[{request.node.callspec.params.get('position')}]"):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    if request.param == "simple":
        yield AsyncSimpleChatStore(inner=SimpleChatStore())
        return
    connections = []
    connect = aiosqlite.connect
    monkeypatch.setattr(aiosqlite, "connect", lambda *a, **b: connections.append(connect(*a, **b)) or connections[-1])
    yield SQLAlchemyChatStore(table_name="messages", async_database_uri="sqlite+aiosqlite:///:memory:")
    for each in connections:  # concurrent calls open several, of which its engine knows one
        await each.close()
