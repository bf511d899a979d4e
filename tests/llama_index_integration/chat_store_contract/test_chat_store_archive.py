"""Archiving in a chat store: archived messages are kept, and left out of active reads."""

import asyncio

import pytest
from llama_index.core.storage.chat_store.base_db import MessageStatus

from tests.llama_index_integration.chat_helpers import stored_texts, texts, user_messages
from tests.llama_index_integration.chat_store_contract.conftest import ARCHIVING_STORES

pytestmark = pytest.mark.parametrize("store", ARCHIVING_STORES, indirect=True)

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


@pytest.mark.parametrize(("n", "archived"), [(0, ""), (2, "ab"), (9, "abcde")])
async def test_archiving_the_oldest_returns_them_in_order(store, n, archived):
    await store.add_messages("s", user_messages(*"abcde"))
    assert texts(await store.archive_oldest_messages("s", n)) == list(archived)
    assert await stored_texts(store, "s") == list("abcde"[n:])
    assert await stored_texts(store, "s", ARCHIVED) == list(archived)


async def test_messages_are_read_and_counted_by_status(store):
    await store.add_messages("s", user_messages("a", "b"))
    await store.add_messages("s", user_messages("c"), ARCHIVED)
    await store.add_message("s", user_messages("d")[0])
    await store.archive_oldest_messages("s", 1)
    expected = {ACTIVE: ["b", "d"], ARCHIVED: ["a", "c"], None: ["a", "b", "c", "d"]}
    for status, stored in expected.items():
        assert await stored_texts(store, "s", status) == stored
        assert await store.count_messages("s", status) == len(stored)
    assert texts(await store.get_messages("s", status=None, limit=2, offset=1)) == ["b", "c"]


async def test_session_with_only_archived_messages_is_listed(store):
    await store.add_message("s", user_messages("a")[0], ARCHIVED)
    assert await store.get_keys() == ["s"]


async def test_archived_messages_are_not_taken_again(store):
    await store.add_messages("s", user_messages("a", "b", "c"))
    await store.archive_oldest_messages("s", 1)
    assert texts(await store.archive_oldest_messages("s", 1)) == ["b"]
    assert texts(await store.delete_oldest_messages("s", 2)) == ["c"]
    assert await stored_texts(store, "s", ARCHIVED) == ["a", "b"]


async def test_messages_are_deleted_by_status(store):
    await store.add_messages("s", user_messages("a", "b", "c"))
    await store.archive_oldest_messages("s", 2)
    await store.delete_messages("s", ARCHIVED)
    assert await stored_texts(store, "s", None) == ["c"]
    await store.add_message("s", user_messages("d")[0], ARCHIVED)
    await store.delete_messages("s")
    assert await stored_texts(store, "s", None) == []


async def test_set_replaces_archived_messages(store):
    await store.add_messages("s", user_messages("a", "b"))
    await store.archive_oldest_messages("s", 1)
    await store.set_messages("s", user_messages("c"), ARCHIVED)
    assert await stored_texts(store, "s", None) == await stored_texts(store, "s", ARCHIVED) == ["c"]


async def test_concurrent_archiving_gives_each_message_to_one_caller(store):
    await store.add_messages("s", user_messages(*range(20)))
    taken = await asyncio.gather(*(store.archive_oldest_messages("s", 1) for _ in range(20)))
    assert sorted(text for each in taken for text in texts(each)) == sorted(map(str, range(20)))
