"""Contract tests for archiving messages in a chat store."""

import asyncio

import pytest
from llama_index.core.storage.chat_store.base_db import MessageStatus

from tests.llama_index_integration.chat_store_contract.helpers import stored_texts, texts_of, user_messages

needs_archiving = pytest.mark.usefixtures("archiving")
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


class ArchiveRules:
    """Archived messages are kept, and left out of active reads."""

    @needs_archiving
    @pytest.mark.parametrize(("n", "archived"), [(0, ""), (2, "ab"), (9, "abcde")])
    def test_archiving_the_oldest_returns_them_in_order(self, store, run, n, archived):
        run(store.add_messages("s", user_messages(*"abcde")))
        assert texts_of(run(store.archive_oldest_messages("s", n))) == list(archived)
        assert run(stored_texts(store, "s")) == list("abcde"[n:])
        assert run(stored_texts(store, "s", ARCHIVED)) == list(archived)

    @needs_archiving
    def test_messages_are_read_and_counted_by_status(self, store, run):
        run(store.add_messages("s", user_messages("a", "b")))
        run(store.add_messages("s", user_messages("c"), ARCHIVED))
        run(store.add_message("s", user_messages("d")[0]))
        run(store.archive_oldest_messages("s", 1))
        expected = {ACTIVE: ["b", "d"], ARCHIVED: ["a", "c"], None: ["a", "b", "c", "d"]}
        for status, texts in expected.items():
            assert run(stored_texts(store, "s", status)) == texts
            assert run(store.count_messages("s", status)) == len(texts)
        assert texts_of(run(store.get_messages("s", status=None, limit=2, offset=1))) == ["b", "c"]

    @needs_archiving
    def test_session_with_only_archived_messages_is_listed(self, store, run):
        run(store.add_message("s", user_messages("a")[0], ARCHIVED))
        assert run(store.get_keys()) == ["s"]

    @needs_archiving
    def test_archived_messages_are_not_taken_again(self, store, run):
        run(store.add_messages("s", user_messages("a", "b", "c")))
        run(store.archive_oldest_messages("s", 1))
        assert texts_of(run(store.archive_oldest_messages("s", 1))) == ["b"]
        assert texts_of(run(store.delete_oldest_messages("s", 2))) == ["c"]
        assert run(stored_texts(store, "s", ARCHIVED)) == ["a", "b"]

    @needs_archiving
    def test_messages_are_deleted_by_status(self, store, run):
        run(store.add_messages("s", user_messages("a", "b", "c")))
        run(store.archive_oldest_messages("s", 2))
        run(store.delete_messages("s", ARCHIVED))
        assert run(stored_texts(store, "s", None)) == ["c"]
        run(store.add_message("s", user_messages("d")[0], ARCHIVED))
        run(store.delete_messages("s"))
        assert run(stored_texts(store, "s", None)) == []

    @needs_archiving
    def test_set_replaces_archived_messages(self, store, run):
        run(store.add_messages("s", user_messages("a", "b")))
        run(store.archive_oldest_messages("s", 1))
        run(store.set_messages("s", user_messages("c"), ARCHIVED))
        assert run(stored_texts(store, "s", None)) == run(stored_texts(store, "s", ARCHIVED)) == ["c"]

    @needs_archiving
    def test_concurrent_archiving_gives_each_message_to_one_caller(self, store, run):
        async def run_concurrently():
            return await asyncio.gather(*(store.archive_oldest_messages("s", 1) for _ in range(20)))

        run(store.add_messages("s", user_messages(*range(20))))
        taken = [str(text) for each in run(run_concurrently()) for text in texts_of(each)]
        assert sorted(taken) == sorted(map(str, range(20)))
