"""MeVeChatStore beyond the chat store contract: ownership, expiry, erasure, holds and the audit log."""

import asyncio
import copy
import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from pydantic import Field

from llama_index_meve import MeVeChatStore
from meve.errors import HoldError, PassageError, ValidationError
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.llama_index_integration.chat_helpers import stored_texts, texts, user_messages

SECRET = "zyxomma petiolatum"
WRITES = {
    "add": lambda store: store.add_message("s", ChatMessage("b")),
    "set": lambda store: store.set_messages("s", user_messages("b")),
    "delete": lambda store: store.delete_message("s", 0),
    "delete all": lambda store: store.delete_messages("s"),
    "delete oldest": lambda store: store.delete_oldest_messages("s", 1),
    "archive": lambda store: store.archive_oldest_messages("s", 1),
}


@pytest.fixture
def memory(file, clock):
    parts = {"embedder": WordEmbedder(), "tokens": WordCounter(), "clock": clock}
    with GovernedMemory.open(file, **parts) as opened:
        yield opened


@pytest.fixture
def store(memory):
    return MeVeChatStore(memory, user_id="alice")


async def test_other_users_cannot_reach_the_messages(memory, store):
    bob, number = MeVeChatStore(memory, user_id="bob"), MeVeChatStore(memory, user_id=1)
    await store.add_message("s", ChatMessage("of alice"))
    for other in (bob, number, MeVeChatStore(memory, user_id="1")):
        assert await stored_texts(other, "s", None) == []
        assert await other.get_last_messages("s", 9, None) == []
        assert await other.count_messages("s", None) == 0
        assert await other.get_keys() == []
        assert await other.delete_message("s", 0) is None
        assert await other.archive_oldest_messages("s", 9) == []
        await other.set_messages("s", user_messages("mine"))
        await other.delete_messages("s")
    assert await stored_texts(store, "s") == ["of alice"]
    with pytest.raises(Exception, match="frozen"):
        store.user_id = "bob"


@pytest.mark.parametrize("ttl", [None, timedelta(minutes=5)])
async def test_expired_messages_are_gone_from_every_read(memory, clock, ttl):
    store = MeVeChatStore(memory, user_id="alice", ttl=ttl)
    await store.add_message("s", ChatMessage("a"))
    clock.advance((ttl or timedelta(days=7)) - timedelta(seconds=1))
    assert await stored_texts(store, "s") == ["a"]
    clock.advance(timedelta(seconds=1))
    assert await stored_texts(store, "s", None) == []
    assert await store.get_last_messages("s", 1) == []
    assert await store.count_messages("s", None) == 0
    assert await store.get_keys() == []
    assert await store.delete_message("s", 0) is None
    assert await store.archive_oldest_messages("s", 1) == []
    assert await store.delete_oldest_messages("s", 1) == []


@pytest.mark.parametrize("way", ["set", "delete", "delete all", "delete oldest", "forget"])
async def test_deleted_message_leaves_no_byte_in_the_files(memory, store, tmp_path, way):
    def files_with_secret():
        return [each.name for each in tmp_path.iterdir() if SECRET.encode() in each.read_bytes()]

    await store.add_message("s", ChatMessage(SECRET, additional_kwargs={"name": SECRET}))
    if way == "forget":
        memory.forget_user(user_id="alice")
    else:
        await WRITES[way](store)
    assert files_with_secret() == []


async def test_audit_log_records_changes_without_content(memory, store):
    await store.add_messages("s", user_messages(SECRET, "b"))
    await store.archive_oldest_messages("s", 1)
    await store.delete_messages("s")
    log = memory.export(user_id="alice")["audit"]
    assert [e["action"] for e in log] == ["add", "add", "update", "delete", "delete"]
    assert SECRET not in json.dumps(log)
    assert memory.audit.verify().ok


async def test_held_message_cannot_be_deleted(memory, store):
    await store.add_messages("s", user_messages("a", "b"))
    memory.hold(memory.messages.page("s", user_id="alice")[1].id, user_id="alice", why="a court")
    for way in (store.delete_messages("s"), store.set_messages("s", []), store.delete_message("s", 1)):
        with pytest.raises(HoldError, match="a court"):
            await way
    assert await stored_texts(store, "s") == ["a", "b"]


async def test_last_messages_are_read_by_status(store):
    await store.add_messages("s", user_messages(*"abcde"))
    await store.archive_oldest_messages("s", 1)
    assert texts(await store.get_last_messages("s", 2)) == ["d", "e"]
    assert texts(await store.get_last_messages("s", 9)) == ["b", "c", "d", "e"]
    assert texts(await store.get_last_messages("s", 9, MessageStatus.ARCHIVED)) == ["a"]
    assert await store.get_last_messages("s", 0) == []


async def test_invalid_message_is_rejected(store):
    with pytest.raises(PassageError, match="ChatMessage"):
        await store.add_messages("s", [ChatMessage("a"), "b"])
    with pytest.raises(PassageError, match="JSON"):
        await store.add_message("s", ChatMessage("a", additional_kwargs={"it": object()}))
    assert await stored_texts(store, "s") == []


async def test_messages_are_not_recalled(memory, store):
    memory.add("Alice likes tea.", user_id="alice", source="doc")
    await store.add_messages("s", user_messages("Alice likes tea.", "Does Alice like tea?"))
    assert [r.source for r in memory.search("Alice likes tea", user_id="alice").records] == ["doc"]


def test_copies_share_the_memory_and_serialization_omits_it(memory, store):
    bob = store.model_copy(update={"user_id": "bob"}, deep=True)
    assert (store.user_id, bob.user_id, bob.memory is memory) == ("alice", "bob", True)
    with pytest.raises(ValidationError, match="user_id"):
        store.model_copy(update={"user_id": ""})
    assert copy.deepcopy(store).memory is store.model_copy(deep=True).memory is memory
    assert json.loads(store.model_dump_json()) == {"user_id": "alice", "ttl": None}
    assert isinstance(store, AsyncDBChatStore)
    assert store.class_name() == "MeVeChatStore"
    assert "memory" not in repr(store)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_locked_file_blocks_neither_the_loop_nor_readers(memory, store, write):
    await store.add_message("s", ChatMessage("a"))
    with memory._runtime.store.writing():
        pending = asyncio.create_task(write(store))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not pending.done()
        assert await stored_texts(store, "s") == ["a"]
    await pending
    assert await stored_texts(store, "s") != ["a"]


def test_store_works_from_any_loop_and_thread(store):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: asyncio.run(store.add_message("s", ChatMessage(str(n)))), range(40)))
    assert sorted(asyncio.run(stored_texts(store, "s"))) == sorted(map(str, range(40)))
    memory = Memory.from_defaults(session_id="sync", chat_store=store)
    memory.put(ChatMessage("one"))
    memory.put(ChatMessage("two"))
    assert texts(memory.get_all()) == ["one", "two"]
    memory.reset()
    assert memory.get_all() == []


async def test_overflow_of_llamaindex_memory_is_archived(store):
    memory = Memory.from_defaults(
        session_id="s", chat_store=store, token_limit=100, token_flush_size=20, chat_history_token_ratio=0.5
    )
    for n in range(40):
        await memory.aput(ChatMessage(f"{n} " + "word " * 5))
    active, archived = await stored_texts(store, "s"), await stored_texts(store, "s", MessageStatus.ARCHIVED)
    assert archived
    assert [int(text.split()[0]) for text in archived + active] == list(range(40))
    assert await stored_texts(store, "s", None) == archived + active


class Flushed(BaseMemoryBlock[str]):
    """Records which texts leave the short-term memory."""

    texts: list = Field(default_factory=list)

    async def _aget(self, messages=None, **kwargs):
        return ""

    async def _aput(self, messages):
        await asyncio.sleep(0)
        self.texts += texts(messages)


def of_session(key, store, **options):
    limits = {"token_limit": 100, "token_flush_size": 20, "chat_history_token_ratio": 0.5}
    return Memory.from_defaults(session_id=key, chat_store=store, **(limits | options))


@pytest.mark.parametrize(("flush_size", "least"), [(20, 5), (100, 1)])
async def test_overlapping_puts_archive_in_order_and_keep_the_newest(memory, flush_size, least):
    """Calls that overlap don't archive what another one has counted, in any number of sessions."""
    sessions = {key: Flushed(name="flushed") for key in "abc"}

    async def talk(key, n):  # as handlers of requests do, each with objects of its own
        store = MeVeChatStore(memory, user_id="alice")
        chat = of_session(key, store, memory_blocks=[sessions[key]], token_flush_size=flush_size)
        await chat.aput(ChatMessage(f"{n} " + "word " * 5))

    for begin in (0, 20):
        await asyncio.gather(*(talk(key, n) for n in range(begin, begin + 20) for key in sessions))
    store = MeVeChatStore(memory, user_id="alice")
    for key, flushed in sessions.items():
        active, archived = await stored_texts(store, key), await stored_texts(store, key, MessageStatus.ARCHIVED)
        assert [int(text.split()[0]) for text in archived + active] == list(range(40))
        assert least <= len(active) <= 8  # 50 tokens are some 7 messages, and a flush may take all but one
        assert list(dict.fromkeys(flushed.texts)) == archived
        if flush_size == 100:  # one flush is enough
            assert flushed.texts == archived


async def test_cancelled_puts_lose_nothing_and_keep_the_newest(memory, store):
    chat = of_session("s", store)
    rng = random.Random(7)

    async def put(n):
        await chat.aput(ChatMessage(f"{n} " + "word " * 5))

    for begin in range(0, 60, 12):
        tasks = [asyncio.create_task(put(n)) for n in range(begin, begin + 12)]
        for _ in range(6):
            await asyncio.sleep(0.001 * rng.random())
            rng.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await put(60)
    active, archived = await stored_texts(store, "s"), await stored_texts(store, "s", MessageStatus.ARCHIVED)
    kept = [int(text.split()[0]) for text in archived + active]
    assert kept == sorted(kept)
    assert kept[-1] == 60
    assert 5 <= len(active) <= 8


async def test_messages_are_archived_up_to_the_last_that_the_task_has_read(store):
    """A number of messages counts from those that the task read, not from what others left of them."""
    await store.add_messages("s", user_messages(*"abc"))
    assert await stored_texts(store, "s") == list("abc")
    await asyncio.create_task(store.archive_oldest_messages("s", 2))
    assert texts(await store.archive_oldest_messages("s", 2)) == []
    assert texts(await store.archive_oldest_messages("s", 1)) == ["c"]
    await store.add_messages("s", user_messages("d"))  # whoever has written has nothing read
    assert texts(await store.archive_oldest_messages("s", 1)) == ["d"]
