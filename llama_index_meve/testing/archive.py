"""Rules of messages that are archived."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from llama_index_meve.testing.talk import contents, said, talk

archived_ones = pytest.mark.usefixtures("archiving")
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


class ArchiveRules:
    """What is archived is kept, and out of the way."""

    @archived_ones
    @pytest.mark.parametrize(("n", "archived"), [(0, ""), (2, "ab"), (9, "abcde")])
    def test_the_oldest_are_archived_and_returned(
        self, store: AsyncDBChatStore, run: Callable[..., Any], n: int, archived: str
    ) -> None:
        """The n oldest active messages are archived, and returned in their order."""
        run(store.add_messages("s", talk(*"abcde")))
        assert contents(run(store.archive_oldest_messages("s", n))) == list(archived)
        assert run(said(store, "s")) == list("abcde"[n:])
        assert run(said(store, "s", ARCHIVED)) == list(archived)

    @archived_ones
    def test_each_status_is_read_and_counted(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """Active ones, archived ones, or both, in the order in which they were added."""
        run(store.add_messages("s", talk("a", "b")))
        run(store.add_messages("s", talk("c"), ARCHIVED))
        run(store.add_message("s", talk("d")[0]))
        run(store.archive_oldest_messages("s", 1))
        expected = {ACTIVE: ["b", "d"], ARCHIVED: ["a", "c"], None: ["a", "b", "c", "d"]}
        for status, texts in expected.items():
            assert run(said(store, "s", status)) == texts
            assert run(store.count_messages("s", status)) == len(texts)
        assert contents(run(store.get_messages("s", status=None, limit=2, offset=1))) == ["b", "c"]

    @archived_ones
    def test_a_session_of_archived_ones_is_a_key(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A session whose messages are all archived is among the keys."""
        run(store.add_message("s", talk("a")[0], ARCHIVED))
        assert run(store.get_keys()) == ["s"]

    @archived_ones
    def test_what_is_archived_is_not_taken_again(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """The oldest of the active ones are taken, whatever is archived before them."""
        run(store.add_messages("s", talk("a", "b", "c")))
        run(store.archive_oldest_messages("s", 1))
        assert contents(run(store.archive_oldest_messages("s", 1))) == ["b"]
        assert contents(run(store.delete_oldest_messages("s", 2))) == ["c"]
        assert run(said(store, "s", ARCHIVED)) == ["a", "b"]

    @archived_ones
    def test_a_status_is_deleted(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """Those of one status are deleted, or all of them."""
        run(store.add_messages("s", talk("a", "b", "c")))
        run(store.archive_oldest_messages("s", 2))
        run(store.delete_messages("s", ARCHIVED))
        assert run(said(store, "s", None)) == ["c"]
        run(store.add_message("s", talk("d")[0], ARCHIVED))
        run(store.delete_messages("s"))
        assert run(said(store, "s", None)) == []

    @archived_ones
    def test_set_replaces_those_too(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """What is set takes the place of archived messages, too."""
        run(store.add_messages("s", talk("a", "b")))
        run(store.archive_oldest_messages("s", 1))
        run(store.set_messages("s", talk("c"), ARCHIVED))
        assert run(said(store, "s", None)) == run(said(store, "s", ARCHIVED)) == ["c"]

    @archived_ones
    def test_nobody_archives_what_another_did(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """When many archive at once, each message is given to one of them."""

        async def story() -> list[Any]:
            return await asyncio.gather(*(store.archive_oldest_messages("s", 1) for _ in range(20)))

        run(store.add_messages("s", talk(*range(20))))
        taken = [str(text) for each in run(story()) for text in contents(each)]
        assert sorted(taken) == sorted(map(str, range(20)))
