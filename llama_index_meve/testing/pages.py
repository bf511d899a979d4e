"""Rules of reading and taking a part of a session."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore

from llama_index_meve.testing.talk import contents, said, talk

LETTERS = "abcde"


class PageRules:
    """A part of a session is that part, and never all of it."""

    @pytest.mark.parametrize(
        ("asked", "expected"),
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
    def test_a_page_is_that_page(
        self, store: AsyncDBChatStore, run: Callable[..., Any], asked: dict[str, Any], expected: str
    ) -> None:
        """Limit and offset count from the oldest message on; a limit of 0 gives none."""
        run(store.add_messages("s", talk(*LETTERS)))
        assert contents(run(store.get_messages("s", **asked))) == list(expected)

    def test_all_are_counted(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """As many are counted as are read."""
        run(store.add_messages("s", talk(*LETTERS)))
        run(store.add_messages("other", talk("x")))
        assert run(store.count_messages("s")) == 5

    @pytest.mark.parametrize(("n", "taken"), [(0, ""), (2, "ab"), (5, "abcde"), (9, "abcde")])
    def test_the_oldest_are_deleted_and_returned(
        self, store: AsyncDBChatStore, run: Callable[..., Any], n: int, taken: str
    ) -> None:
        """The n oldest messages are deleted, and returned in their order."""
        run(store.add_messages("s", talk(*LETTERS)))
        assert contents(run(store.delete_oldest_messages("s", n))) == list(taken)
        assert run(said(store, "s")) == list(LETTERS[n:])

    def test_less_than_nothing_deletes_nothing(self, store: AsyncDBChatStore, run: Callable[..., Any]) -> None:
        """A negative number of messages to delete is refused, or deletes none."""
        run(store.add_messages("s", talk(*LETTERS)))
        with suppress(ValueError):
            assert run(store.delete_oldest_messages("s", -1)) == []
        assert run(said(store, "s")) == list(LETTERS)
