"""Contract tests for reading and deleting part of a session."""

from contextlib import suppress

import pytest

from tests.llama_index_integration.chat_store_contract.helpers import stored_texts, texts_of, user_messages

LETTERS = "abcde"


class PageRules:
    """Paged reads and deletes touch only the requested part of a session."""

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
    def test_limit_and_offset_count_from_the_oldest(self, store, run, page, expected):
        run(store.add_messages("s", user_messages(*LETTERS)))
        assert texts_of(run(store.get_messages("s", **page))) == list(expected)

    def test_count_is_per_session(self, store, run):
        run(store.add_messages("s", user_messages(*LETTERS)))
        run(store.add_messages("other", user_messages("x")))
        assert run(store.count_messages("s")) == 5

    @pytest.mark.parametrize(("n", "taken"), [(0, ""), (2, "ab"), (5, "abcde"), (9, "abcde")])
    def test_deleting_the_oldest_returns_them_in_order(self, store, run, n, taken):
        run(store.add_messages("s", user_messages(*LETTERS)))
        assert texts_of(run(store.delete_oldest_messages("s", n))) == list(taken)
        assert run(stored_texts(store, "s")) == list(LETTERS[n:])

    def test_negative_number_deletes_nothing(self, store, run):
        run(store.add_messages("s", user_messages(*LETTERS)))
        with suppress(ValueError):
            assert run(store.delete_oldest_messages("s", -1)) == []
        assert run(stored_texts(store, "s")) == list(LETTERS)
