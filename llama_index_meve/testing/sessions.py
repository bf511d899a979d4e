"""Rules of sessions: order, keys, replacing, deleting, and many callers at once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

from llama_index_meve.testing.talk import contents, said, talk

WRITERS = 50
KEYS = ("a", "A", "a ", "50%_*", 'it\'s "quoted"; --', "é早🌞", "a/b:c", "x" * 500)


class SessionRules:
    """Each key is a session, which keeps what is said in it, in order."""

    def test_messages_come_in_the_order_in_which_they_were_added(
        self, store: AsyncDBChatStore, run: Callable[..., Any]
    ) -> None:
        """Messages come in the order in which they were added, one by one or many at once."""
        run(store.add_message("s", talk("a")[0]))
        run(store.add_messages("s", talk("b", "c", "b")))
        run(store.add_message("s", talk("d")[0]))
        assert run(said(store, "s")) == ["a", "b", "c", "b", "d"]

    def test_nothing_is_added_of_nothing(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """No messages add nothing."""
        run(store.add_messages("s", []))
        assert run(said(store, "s")) == []
        assert run(store.get_keys()) == []

    def test_sessions_are_apart(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A key is any text, and reads and deletes what was added under it alone."""
        for key in KEYS:
            run(store.add_message(key, talk(key)[0]))
        assert sorted(run(store.get_keys())) == sorted(KEYS)
        run(store.delete_messages(KEYS[0]))
        assert [run(said(store, key)) for key in KEYS] == [[], *([key] for key in KEYS[1:])]

    def test_a_session_that_nobody_wrote_to_is_empty(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A key that isn't there reads as empty, and reading doesn't make it."""
        assert run(said(store, "s")) == []
        assert run(store.count_messages("s")) == 0
        assert run(store.delete_oldest_messages("s", 3)) == []
        run(store.delete_messages("s"))
        assert run(store.get_keys()) == []

    def test_an_emptied_session_is_no_key(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A session without messages isn't among the keys."""
        for key in ("deleted", "set", "taken"):
            run(store.add_message(key, talk("a")[0]))
        run(store.delete_messages("deleted"))
        run(store.set_messages("set", []))
        run(store.delete_oldest_messages("taken", 1))
        assert run(store.get_keys()) == []

    def test_set_replaces_all(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What is set is all that there is, in its order."""
        run(store.add_messages("s", talk("a", "b")))
        run(store.add_messages("other", talk("x")))
        run(store.set_messages("s", talk("c", "a", "d")))
        run(store.add_message("s", talk("e")[0]))
        assert run(said(store, "s")) == ["c", "a", "d", "e"]
        assert run(said(store, "other")) == ["x"]

    def test_what_cannot_be_set_leaves_what_was(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """Of a list that can't be set nothing is set, and nothing is lost."""
        run(store.add_messages("s", talk("a", "b")))
        bad = talk("d")[0]
        bad.additional_kwargs["it"] = object()
        with pytest.raises(Exception, match=r"(?s).+"):
            run(store.set_messages("s", [*talk("c"), bad]))
        assert run(said(store, "s")) == ["a", "b"]

    def test_a_message_is_deleted_by_its_position(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """The index of a message to delete is its position in the list that is read; it is returned."""
        run(store.add_messages("before", talk("x", "y")))
        run(store.add_messages("s", talk("a", "b", "c")))
        assert run(store.delete_message("s", 1)).content == "b"
        assert run(store.delete_message("s", 1)).content == "c"
        assert run(said(store, "s")) == ["a"]
        assert run(said(store, "before")) == ["x", "y"]

    @pytest.mark.parametrize("position", [-1, 2, 10**6])
    def test_where_no_message_is_none_is_deleted(
        self, store: AsyncDBChatStore, run: Callable[..., Any], position: int
    ) -> None:
        """A position at which there is no message deletes none, and returns None."""
        run(store.add_messages("s", talk("a", "b")))
        assert run(store.delete_message("s", position)) is None
        assert run(said(store, "s")) == ["a", "b"]

    def test_many_writers_lose_nothing(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What many add at once is all there, from the first moment of a new store on."""

        async def story() -> None:
            await asyncio.gather(*(store.add_message("s", message) for message in talk(*range(WRITERS))))

        run(story())
        assert sorted(run(said(store, "s"))) == sorted(map(str, range(WRITERS)))

    def test_what_is_added_at_once_stays_together(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What one caller adds at once, such as a tool call and its result, stands next to each other."""

        async def story() -> None:
            pairs = [talk(f"{n} call", f"{n} result") for n in range(WRITERS)]
            await asyncio.gather(*(store.add_messages("s", pair) for pair in pairs))

        run(said(store, "s"))
        run(story())
        found = run(said(store, "s"))
        assert len(found) == 2 * WRITERS
        assert [text.replace("call", "result") for text in found[::2]] == found[1::2]

    def test_of_many_that_set_one_is_kept_whole(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """When many set a session at once, one caller's list is what it holds."""

        async def story() -> None:
            await asyncio.gather(*(store.set_messages("s", talk(n, n, n)) for n in range(WRITERS)))

        run(said(store, "s"))
        run(story())
        found = run(said(store, "s"))
        assert len(found) == 3
        assert len(set(found)) == 1

    def test_nobody_takes_what_another_took(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """When many delete the oldest at once, each message is given to one of them."""

        async def story() -> list[Any]:
            return await asyncio.gather(*(store.delete_oldest_messages("s", 1) for _ in range(20)))

        run(store.add_messages("s", talk(*range(20))))
        taken = [str(text) for each in run(story()) for text in contents(each)]
        assert sorted(taken) == sorted(map(str, range(20)))

    def test_it_stands_under_the_frameworks_memory(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """Under LlamaIndex's Memory what many put at once is all there."""
        memory = Memory.from_defaults(session_id="s", chat_store=store)

        async def story() -> None:
            await asyncio.gather(*(memory.aput(message) for message in talk(*range(WRITERS))))

        run(memory.aput(talk("first")[0]))
        run(story())
        assert sorted(map(str, contents(run(memory.aget())))) == sorted(["first", *map(str, range(WRITERS))])
