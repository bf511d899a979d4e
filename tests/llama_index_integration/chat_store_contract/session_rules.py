"""Contract tests for sessions: order, keys, replacement, deletion and concurrent callers."""

import asyncio

import pytest
from llama_index.core.memory import Memory

from tests.llama_index_integration.chat_store_contract.helpers import stored_texts, texts_of, user_messages

WRITERS = 50
KEYS = ("a", "A", "a ", "50%_*", 'it\'s "quoted"; --', "é早🌞", "a/b:c", "x" * 500)


class SessionRules:
    """Each key is a session that keeps its messages in order."""

    def test_messages_keep_the_order_in_which_they_were_added(self, store, run):
        run(store.add_message("s", user_messages("a")[0]))
        run(store.add_messages("s", user_messages("b", "c", "b")))
        run(store.add_message("s", user_messages("d")[0]))
        assert run(stored_texts(store, "s")) == ["a", "b", "c", "b", "d"]

    def test_adding_no_messages_adds_nothing(self, store, run):
        run(store.add_messages("s", []))
        assert run(stored_texts(store, "s")) == []
        assert run(store.get_keys()) == []

    def test_sessions_with_similar_keys_are_isolated(self, store, run):
        for key in KEYS:
            run(store.add_message(key, user_messages(key)[0]))
        assert sorted(run(store.get_keys())) == sorted(KEYS)
        run(store.delete_messages(KEYS[0]))
        assert [run(stored_texts(store, key)) for key in KEYS] == [[], *([key] for key in KEYS[1:])]

    def test_unknown_session_reads_as_empty_and_is_not_created(self, store, run):
        assert run(stored_texts(store, "s")) == []
        assert run(store.count_messages("s")) == 0
        assert run(store.delete_oldest_messages("s", 3)) == []
        run(store.delete_messages("s"))
        assert run(store.get_keys()) == []

    def test_emptied_session_is_not_listed(self, store, run):
        for key in ("deleted", "set", "taken"):
            run(store.add_message(key, user_messages("a")[0]))
        run(store.delete_messages("deleted"))
        run(store.set_messages("set", []))
        run(store.delete_oldest_messages("taken", 1))
        assert run(store.get_keys()) == []

    def test_set_replaces_all_messages(self, store, run):
        run(store.add_messages("s", user_messages("a", "b")))
        run(store.add_messages("other", user_messages("x")))
        run(store.set_messages("s", user_messages("c", "a", "d")))
        run(store.add_message("s", user_messages("e")[0]))
        assert run(stored_texts(store, "s")) == ["c", "a", "d", "e"]
        assert run(stored_texts(store, "other")) == ["x"]

    def test_failed_set_changes_nothing(self, store, run):
        run(store.add_messages("s", user_messages("a", "b")))
        bad = user_messages("d")[0]
        bad.additional_kwargs["it"] = object()
        with pytest.raises(Exception, match=r"(?s).+"):
            run(store.set_messages("s", [*user_messages("c"), bad]))
        assert run(stored_texts(store, "s")) == ["a", "b"]

    def test_message_is_deleted_by_position_and_returned(self, store, run):
        run(store.add_messages("before", user_messages("x", "y")))
        run(store.add_messages("s", user_messages("a", "b", "c")))
        assert run(store.delete_message("s", 1)).content == "b"
        assert run(store.delete_message("s", 1)).content == "c"
        assert run(stored_texts(store, "s")) == ["a"]
        assert run(stored_texts(store, "before")) == ["x", "y"]

    @pytest.mark.parametrize("position", [-1, 2, 10**6])
    def test_deleting_at_an_invalid_position_returns_none(self, store, run, position):
        run(store.add_messages("s", user_messages("a", "b")))
        assert run(store.delete_message("s", position)) is None
        assert run(stored_texts(store, "s")) == ["a", "b"]

    def test_concurrent_writers_lose_no_message(self, store, run):
        async def run_concurrently():
            await asyncio.gather(*(store.add_message("s", message) for message in user_messages(*range(WRITERS))))

        run(run_concurrently())
        assert sorted(run(stored_texts(store, "s"))) == sorted(map(str, range(WRITERS)))

    def test_messages_added_together_stay_adjacent(self, store, run):
        async def run_concurrently():
            pairs = [user_messages(f"{n} call", f"{n} result") for n in range(WRITERS)]
            await asyncio.gather(*(store.add_messages("s", pair) for pair in pairs))

        run(stored_texts(store, "s"))
        run(run_concurrently())
        stored = run(stored_texts(store, "s"))
        assert len(stored) == 2 * WRITERS
        assert [text.replace("call", "result") for text in stored[::2]] == stored[1::2]

    def test_concurrent_sets_keep_one_list_whole(self, store, run):
        async def run_concurrently():
            await asyncio.gather(*(store.set_messages("s", user_messages(n, n, n)) for n in range(WRITERS)))

        run(stored_texts(store, "s"))
        run(run_concurrently())
        stored = run(stored_texts(store, "s"))
        assert len(stored) == 3
        assert len(set(stored)) == 1

    def test_concurrent_deletes_give_each_message_to_one_caller(self, store, run):
        async def run_concurrently():
            return await asyncio.gather(*(store.delete_oldest_messages("s", 1) for _ in range(20)))

        run(store.add_messages("s", user_messages(*range(20))))
        taken = [str(text) for each in run(run_concurrently()) for text in texts_of(each)]
        assert sorted(taken) == sorted(map(str, range(20)))

    def test_concurrent_puts_through_llamaindex_memory_lose_no_message(self, store, run):
        memory = Memory.from_defaults(session_id="s", chat_store=store)

        async def run_concurrently():
            await asyncio.gather(*(memory.aput(message) for message in user_messages(*range(WRITERS))))

        run(memory.aput(user_messages("first")[0]))
        run(run_concurrently())
        assert sorted(map(str, texts_of(run(memory.aget())))) == sorted(["first", *map(str, range(WRITERS))])
