"""Sessions of a chat store: order, keys, pages, replacement, deletion and concurrent callers."""

import asyncio
from contextlib import suppress

import pytest
from llama_index.core.memory import Memory

from tests.llama_index_integration.chat_helpers import stored_texts, texts, user_messages

WRITERS = 50
LETTERS = "abcde"
KEYS = ("a", "A", "a ", "50%_*", 'it\'s "quoted"; --', "é早🌞", "a/b:c", "x" * 500)


async def test_messages_keep_the_order_in_which_they_were_added(store):
    await store.add_message("s", user_messages("a")[0])
    await store.add_messages("s", user_messages("b", "c", "b"))
    await store.add_message("s", user_messages("d")[0])
    assert await stored_texts(store, "s") == ["a", "b", "c", "b", "d"]


async def test_adding_no_messages_adds_nothing(store):
    await store.add_messages("s", [])
    assert await stored_texts(store, "s") == []
    assert await store.get_keys() == []


async def test_sessions_with_similar_keys_are_isolated(store):
    for key in KEYS:
        await store.add_message(key, user_messages(key)[0])
    assert sorted(await store.get_keys()) == sorted(KEYS)
    await store.delete_messages(KEYS[0])
    assert [await stored_texts(store, key) for key in KEYS] == [[], *([key] for key in KEYS[1:])]


async def test_unknown_session_reads_as_empty_and_is_not_created(store):
    assert await stored_texts(store, "s") == []
    assert await store.count_messages("s") == 0
    assert await store.delete_oldest_messages("s", 3) == []
    await store.delete_messages("s")
    assert await store.get_keys() == []


async def test_emptied_session_is_not_listed(store):
    for key in ("deleted", "set", "taken"):
        await store.add_message(key, user_messages("a")[0])
    await store.delete_messages("deleted")
    await store.set_messages("set", [])
    await store.delete_oldest_messages("taken", 1)
    assert await store.get_keys() == []


async def test_set_replaces_all_messages(store):
    await store.add_messages("s", user_messages("a", "b"))
    await store.add_messages("other", user_messages("x"))
    await store.set_messages("s", user_messages("c", "a", "d"))
    await store.add_message("s", user_messages("e")[0])
    assert await stored_texts(store, "s") == ["c", "a", "d", "e"]
    assert await stored_texts(store, "other") == ["x"]


async def test_failed_set_changes_nothing(store):
    await store.add_messages("s", user_messages("a", "b"))
    bad = user_messages("d")[0]
    bad.additional_kwargs["it"] = object()
    with pytest.raises(Exception, match=r"(?s).+"):
        await store.set_messages("s", [*user_messages("c"), bad])
    assert await stored_texts(store, "s") == ["a", "b"]


async def test_message_is_deleted_by_position_and_returned(store):
    await store.add_messages("before", user_messages("x", "y"))
    await store.add_messages("s", user_messages("a", "b", "c"))
    assert (await store.delete_message("s", 1)).content == "b"
    assert (await store.delete_message("s", 1)).content == "c"
    assert await stored_texts(store, "s") == ["a"]
    assert await stored_texts(store, "before") == ["x", "y"]


@pytest.mark.parametrize("position", [-1, 2, 10**6])
async def test_deleting_at_an_invalid_position_returns_none(store, position):
    await store.add_messages("s", user_messages("a", "b"))
    assert await store.delete_message("s", position) is None
    assert await stored_texts(store, "s") == ["a", "b"]


async def test_concurrent_writers_lose_no_message(store):
    await asyncio.gather(*(store.add_message("s", message) for message in user_messages(*range(WRITERS))))
    assert sorted(await stored_texts(store, "s")) == sorted(map(str, range(WRITERS)))


async def test_messages_added_together_stay_adjacent(store):
    await stored_texts(store, "s")
    pairs = [user_messages(f"{n} call", f"{n} result") for n in range(WRITERS)]
    await asyncio.gather(*(store.add_messages("s", pair) for pair in pairs))
    stored = await stored_texts(store, "s")
    assert len(stored) == 2 * WRITERS
    assert [text.replace("call", "result") for text in stored[::2]] == stored[1::2]


async def test_concurrent_sets_keep_one_list_whole(store):
    await stored_texts(store, "s")
    await asyncio.gather(*(store.set_messages("s", user_messages(n, n, n)) for n in range(WRITERS)))
    stored = await stored_texts(store, "s")
    assert len(stored) == 3
    assert len(set(stored)) == 1


async def test_concurrent_deletes_give_each_message_to_one_caller(store):
    await store.add_messages("s", user_messages(*range(20)))
    taken = await asyncio.gather(*(store.delete_oldest_messages("s", 1) for _ in range(20)))
    assert sorted(text for each in taken for text in texts(each)) == sorted(map(str, range(20)))


async def test_concurrent_puts_through_llamaindex_memory_lose_no_message(store):
    memory = Memory.from_defaults(session_id="s", chat_store=store)

    await memory.aput(user_messages("first")[0])
    await asyncio.gather(*(memory.aput(message) for message in user_messages(*range(WRITERS))))
    assert sorted(map(str, texts(await memory.aget()))) == sorted(["first", *map(str, range(WRITERS))])


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ({}, "abcde"),
        ({"limit": 2}, "ab"),
        ({"offset": 2}, "cde"),
        ({"limit": 2, "offset": 1}, "bc"),
        ({"limit": 0}, ""),
        ({"limit": 9, "offset": 4}, "e"),
        ({"offset": 5}, ""),
    ],
)
async def test_limit_and_offset_count_from_the_oldest(store, page, expected):
    await store.add_messages("s", user_messages(*LETTERS))
    assert texts(await store.get_messages("s", **page)) == list(expected)


async def test_count_is_per_session(store):
    await store.add_messages("s", user_messages(*LETTERS))
    await store.add_messages("other", user_messages("x"))
    assert await store.count_messages("s") == 5


@pytest.mark.parametrize(("n", "taken"), [(0, ""), (2, "ab"), (5, "abcde"), (9, "abcde")])
async def test_deleting_the_oldest_returns_them_in_order(store, n, taken):
    await store.add_messages("s", user_messages(*LETTERS))
    assert texts(await store.delete_oldest_messages("s", n)) == list(taken)
    assert await stored_texts(store, "s") == list(LETTERS[n:])


async def test_negative_number_deletes_nothing(store):
    await store.add_messages("s", user_messages(*LETTERS))
    with suppress(ValueError):
        assert await store.delete_oldest_messages("s", -1) == []
    assert await stored_texts(store, "s") == list(LETTERS)
