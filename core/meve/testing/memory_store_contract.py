"""The contract of memory stores. Inherit `MemoryStoreContract`, override `opened`, and run pytest.

class TestMine(MemoryStoreContract):
    @pytest.fixture
    def opened(self, tmp_path):
        return lambda: MyStore.open(tmp_path / "memory")
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import numpy as np

from meve._extras import require_imports
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import DuplicateIdError, IndexMismatchError, StorageError
from meve.memory.records import SHARED, SharedScore, user_key
from meve.memory.stores._closed_records import find_replaced
from meve.memory.stores._record_store import RecordStore
from meve.memory.stores.protocol import EventQuery, Field, MemoryStore, RecordQuery
from meve.testing import NEEDS, SUITE
from meve.testing._memory_records import (
    ALICE,
    BOB,
    LATER,
    NOW,
    archive,
    erase,
    event,
    ids_of,
    insert,
    message,
    query_messages,
    stored,
)  # fmt: skip

with require_imports(SUITE, NEEDS):
    import pytest

OUTCOMES = OutcomeStatistics(count=3, mean=0.5, squares=0.5)
OpenStore: TypeAlias = Callable[[], MemoryStore]
"""A function that opens the store of this test, the same one each time."""


class MemoryStoreContract:
    """The rules of `meve.memory.stores.protocol`. A store is tested under `RecordStore`, as a memory uses it."""

    @pytest.fixture
    def opened(self) -> OpenStore:
        """Return a function that opens the store; each test has its own."""
        raise NotImplementedError("give a fixture `opened` that returns a function without arguments")

    @pytest.fixture
    def reopened(self, opened: OpenStore) -> Callable[[], RecordStore]:
        """Open the store again."""
        return lambda: RecordStore.open(opened())

    @pytest.fixture
    def store(self, reopened: Callable[[], RecordStore]) -> RecordStore:
        """Return an empty store."""
        return reopened()

    def test_record_comes_back_unchanged_after_reopening(
        self, store: RecordStore, reopened: Callable[[], RecordStore]
    ) -> None:
        whole = stored(
            "a", kind="summary", tags=("x", "y"), metadata={"n": 1, "deep": [None, "é"]}, session_id="s",
            expires_at=LATER, reflection=12.5, touched_at=NOW, used_at=NOW, uses=3, outcomes=OUTCOMES, flagged="why",
            hold="wait", valid_from=NOW, valid_to=LATER, superseded_by="b", restored_at=LATER, derived_from=("c",),
            version=4,
        )  # fmt: skip
        insert(store, whole)
        store.close()
        read = reopened().find(ALICE, "a")
        assert read is not None
        assert (read.record, read.tokens) == (whole.record, 5)
        assert np.array_equal(read.vector, whole.vector)
        assert np.array_equal(read.passages, whole.passages)

    def test_users_read_nothing_of_each_other(self, store: RecordStore) -> None:
        insert(store, stored("a"))
        insert(store, stored("a", BOB, text="another"), user=BOB)
        erase(store, "a")
        assert store.find(ALICE, "a") is None
        assert [s.record.text for s in store.changes(BOB, 0).records] == ["another"]
        assert store.users() == [BOB]
        assert [e.record_id for e in store.events(EventQuery(user=BOB))] == ["a"]

    def test_taken_id_is_refused_and_rolls_the_transaction_back(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b"))
        archive(store, "b")
        for taken in ("a", "b"):
            with pytest.raises(DuplicateIdError, match=taken):
                insert(store, stored("c"), stored(taken))
        assert store.find(ALICE, "c") is None
        assert store.counts().events == 2

    def test_changes_are_those_since_a_version(self, store: RecordStore) -> None:
        assert (store.version(ALICE), list(store.changes(ALICE, 0).records)) == (0, [])
        insert(store, stored("a"), stored("b"))
        first = store.changes(ALICE, 0)
        assert (first.version, first.is_complete) == (store.version(ALICE), True)
        rows = {s.record.id: s.row for s in first.records}
        with store.writing() as transaction:
            transaction.replace(ALICE, stored("a", text="changed"))
            transaction.erase(ALICE, stored("b").record)
            transaction.insert(ALICE, stored("c"))
        since = store.changes(ALICE, first.version)
        assert since.version > first.version
        assert {s.record.id: s.record.text for s in since.records} == {"a": "changed", "c": "text of c"}
        assert list(since.removed_rows) == [rows["b"]]
        assert list(store.changes(ALICE, since.version).records) == []
        assert store.changes(ALICE, since.version + 5).is_complete

    def test_row_of_a_removed_record_is_never_given_again(self, store: RecordStore) -> None:
        seen: set[int] = set()
        for n in range(5):
            insert(store, stored(f"r{n}"))
            (each,) = store.changes(ALICE, 0).records
            assert each.row not in seen
            seen.add(each.row)
            erase(store, f"r{n}")

    def test_touch_sets_a_later_time_and_keeps_the_version(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b"))
        before = store.version(ALICE)
        with store.writing(durable=False) as transaction:
            transaction.touch(ALICE, ["a", "none"], LATER)
            transaction.touch(ALICE, ["a"], NOW)
        assert store.version(ALICE) == before
        first = store.find(ALICE, "a")
        assert first is not None
        assert store.touched(ALICE, {"a": first.row, "b": first.row + 1, "none": 0}) == {first.row: LATER}

    def test_archived_record_leaves_the_changes_and_is_found(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b", derived_from=("z",), outcomes=OUTCOMES))
        before = store.changes(ALICE, 0)
        archive(store, "b")
        assert ids_of(list(store.changes(ALICE, 0).records)) == ["a"]
        assert list(store.changes(ALICE, before.version).removed_rows) == [before.records[1].row]
        assert ids_of(store.records(RecordQuery(user=ALICE, archived=True))) == ["b"]
        archived = store.find(ALICE, "b")
        assert archived is not None
        assert archived.record == stored("b", derived_from=("z",), outcomes=OUTCOMES, archived=True).record
        assert np.allclose(archived.vector, [1, 0.5, -2, 0], atol=1e-2)
        assert np.array_equal(archived.passages, before.records[1].passages)
        with store.writing() as transaction:
            assert ids_of(transaction.with_derived(ALICE, ["z"])) == ["b"]
        erase(store, "b")
        assert store.find(ALICE, "b") is None

    def test_archived_record_can_be_restored(self, store: RecordStore) -> None:
        insert(store, stored("a"))
        archive(store, "a")
        version = store.version(ALICE)
        with store.writing() as transaction:
            transaction.replace(ALICE, stored("a"))
        assert ids_of(list(store.changes(ALICE, version).records)) == ["a"]
        assert (store.counts().records, store.counts().archived) == (1, 0)

    def test_shared_scores_go_with_the_record_and_with_the_user(self, store: RecordStore) -> None:
        insert(store, stored("s", SHARED), stored("t", SHARED), user=SHARED)
        score = SharedScore(reflection=60, touched_at=NOW, used_at=None, uses=1, outcomes=OUTCOMES)
        with store.writing() as transaction:
            for user in (ALICE, BOB):
                transaction.put_shared_score(user, "s", score)
            transaction.put_shared_score(ALICE, "t", score)
            assert transaction.shared_scores(ALICE)["s"] == score
        assert store.shared_scores(BOB) == {"s": score}
        erase(store, "s", user=SHARED)
        with store.writing() as transaction:
            transaction.forget_user(ALICE)
        assert (store.shared_scores(ALICE), store.shared_scores(BOB)) == ({}, {})

    def test_users_are_those_with_a_record(self, store: RecordStore) -> None:
        insert(store, stored("a"))
        insert(store, stored("b", BOB), user=BOB)
        insert(store, stored("s", SHARED), user=SHARED)
        archive(store, "a")
        erase(store, "b", user=BOB)
        assert store.counts().users == 1
        assert store.users() == sorted([SHARED, ALICE])

    def test_transaction_that_raises_leaves_nothing(self, store: RecordStore) -> None:
        insert(store, stored("a"))
        before = (store.version(ALICE), store.counts().events, store.head())

        def run_interrupted() -> None:
            with store.writing() as transaction:
                transaction.insert(ALICE, stored("b"))
                transaction.log(event("b"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            run_interrupted()
        assert (store.version(ALICE), store.counts().events, store.head()) == before
        assert store.find(ALICE, "b") is None
        with pytest.raises(StorageError), store.writing() as transaction:
            transaction.replace(ALICE, stored("none"))

    def test_log_is_ordered_and_filtered_after_reopening(
        self, store: RecordStore, reopened: Callable[[], RecordStore]
    ) -> None:
        insert(store, stored("a"), stored("b"))
        with store.writing() as transaction:
            transaction.erase(ALICE, stored("a").record)
            transaction.log(event("a", action="delete", at=LATER, detail={"score": 1.5}))
        head = store.head()
        store.close()
        again = reopened()
        later = round(LATER.timestamp() * 1e6)
        assert [e.seq for e in again.events(EventQuery())] == [1, 2, 3]
        assert [e.action for e in again.events(EventQuery(user=ALICE, record="a"))] == ["add", "delete"]
        (deleted,) = again.events(EventQuery(actions=["delete"], since=later))
        assert (deleted.record_id, deleted.detail["score"], deleted.user_id) == ("a", 1.5, "alice")
        assert [e.seq for e in again.events(EventQuery(until=later))] == [1, 2]
        assert again.verify(head).ok
        assert again.head() == head

    def test_many_writers_lose_nothing(self, store: RecordStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: insert(store, stored(f"r{n}")), range(40)))
        assert store.counts().records == 40
        assert store.verify().events == 40
        assert store.verify().ok

    def test_reader_sees_one_state(self, store: RecordStore) -> None:
        insert(store, stored("a", uses=0), stored("b", uses=0))

        def write() -> None:
            for n in range(1, 30):
                with store.writing(durable=False) as transaction:
                    transaction.replace(ALICE, stored("a", uses=n))
                    transaction.replace(ALICE, stored("b", uses=n))

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not writing.done():
                assert len({s.record.uses for s in store.changes(ALICE, 0).records}) == 1
            writing.result()

    def test_another_embedder_is_refused_after_reopening(
        self, store: RecordStore, reopened: Callable[[], RecordStore]
    ) -> None:
        store.embedders.claim("one 4")
        store.embedders.claim("one 4")
        store.close()
        with pytest.raises(IndexMismatchError, match="two"):
            reopened().embedders.claim("two 4")

    def test_former_embedders_are_accepted_until_the_end_of_reembedding(self, store: RecordStore) -> None:
        store.embedders.claim("one 4")
        store.embedders.claim("two 8", reembed=True)
        store.embedders.claim("one 4")
        assert store.embedders.name() == "two"
        assert not store.embedders.finish_reembedding("two 8", lambda _: False)
        store.embedders.claim("one 4")
        assert store.embedders.finish_reembedding("two 8", lambda _: True)
        with pytest.raises(IndexMismatchError, match="one"):
            store.embedders.claim("one 4")

    def test_a_vector_keeps_its_model(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b"))
        archive(store, "b")
        with store.writing() as transaction:
            of_two = replace(
                stored("a"),
                model="two 2",
                vector=np.array([1, 0], dtype=np.float32),
                passages=np.array([[0, 1]] * 3, dtype=np.float16),
            )
            transaction.put_vectors(ALICE, of_two)
        found = {s.record.id: (s.model, s.vector.shape, s.passages.shape) for s in store.all_records(ALICE)}
        assert found == {"a": ("two 2", (2,), (3, 2)), "b": ("one 4", (4,), (2, 4))}

    def test_closed_store_raises(self, store: RecordStore) -> None:
        store.close()
        with pytest.raises(StorageError):
            store.version(ALICE)

    def test_replaced_record_keeps_its_row(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b"))
        rows = {s.record.id: s.row for s in store.changes(ALICE, 0).records}
        with store.writing() as transaction:
            transaction.replace(ALICE, stored("a", text="changed"))
        assert {s.record.id: s.row for s in store.changes(ALICE, 0).records} == rows

    def test_messages_are_read_by_user_session_and_status(self, store: RecordStore) -> None:
        insert(
            store, message("a"), message("x", session_id="other"), message("b", archived=True),
            stored("no", session_id="s"),
        )  # fmt: skip
        insert(store, message("a", user=BOB), user=BOB)
        insert(store, message("expired", expires_at=NOW), message("c", expires_at=LATER))
        records = store.records(query_messages(archived=None))
        assert [s.record.id for s in records] == ["a", "b", "c"]
        assert [s.row for s in records] == sorted({s.row for s in records})
        assert records[0].record == message("a").record
        with store.writing() as transaction:
            assert ids_of(transaction.records(query_messages(archived=None))) == ["a", "b", "c"]
        for archived, ids in ((False, ["a", "c"]), (True, ["b"]), (None, ["a", "b", "c"])):
            query = query_messages(archived=archived)
            assert ids_of(store.records(query)) == ids
            assert store.count(query) == len(ids)
        assert ids_of(store.records(query_messages(BOB))) == ["a"]
        for user, sessions in ((ALICE, ["other", "s"]), (BOB, ["s"]), (user_key("nobody"), [])):
            query = replace(query_messages(user, archived=None), session_id=None)
            assert sorted(store.select(query, "session_id")) == [(session_id,) for session_id in sessions]
        fields: tuple[Field, ...] = get_args(Field)
        values = store.select(query_messages(archived=None, newest_first=True), *fields)
        assert values == [
            (s.row, *(getattr(s.record, name) for name in fields[1:])) for s in reversed(records)
        ]  # fmt: skip

    def test_archived_message_keeps_its_row(self, store: RecordStore) -> None:
        insert(store, message("a"), message("b"))
        rows = [s.row for s in store.records(query_messages())]
        archive(store, "a")
        records = store.records(query_messages(archived=None))
        assert [(s.record.id, s.row, s.record.archived) for s in records] == [
            ("a", rows[0], True),
            ("b", rows[1], False),
        ]

    def test_page_of_messages_counts_from_either_end(self, store: RecordStore) -> None:
        insert(store, *(message(name) for name in "abcde"))
        rows = [each.row for each in store.records(query_messages())]
        pages: list[tuple[dict[str, Any], str]] = [
            ({"limit": 2}, "ab"),
            ({"limit": 2, "offset": 1}, "bc"),
            ({"offset": 3}, "de"),
            ({"limit": 2, "newest_first": True}, "ed"),
            ({"limit": 2, "offset": 1, "newest_first": True}, "dc"),
            ({"after": rows[2]}, "de"),
            ({"after": rows[0], "before": rows[3]}, "bc"),
            ({"ids": ("d", "b", "none")}, "bd"),
            ({"ids": ()}, ""),
            ({"limit": 0}, ""),
        ]
        for conditions, ids in pages:
            assert ids_of(store.records(query_messages(**conditions))) == list(ids)
            with store.writing() as transaction:
                assert ids_of(transaction.records(query_messages(**conditions))) == list(ids)
        assert store.count(query_messages(after=rows[2], limit=1)) == 2

    def test_derived_records_are_found_with_their_origins(self, store: RecordStore) -> None:
        insert(store, stored("a"), stored("b"), stored("c"), stored("ab", derived_from=("a", "b")))
        with store.writing() as transaction:
            assert sorted(ids_of(transaction.with_derived(ALICE, ["a", "b"]))) == ["a", "ab", "b"]
            assert transaction.with_derived(ALICE, []) == []

    def test_replaced_records_are_found_by_what_replaced_them(self, store: RecordStore) -> None:
        insert(store, stored("new", derived_from=("copy",)), stored("copy", superseded_by="new"))
        insert(store, stored("old", superseded_by="new", flagged="judged"), stored("older", superseded_by="old"))
        insert(store, stored("other", superseded_by="none"))
        for _ in range(2):
            found = store.records(RecordQuery(user=ALICE, archived=None, superseded_by=["new"]))
            assert sorted(ids_of(found)) == ["copy", "old"]
            assert store.count(RecordQuery(user=ALICE, archived=None, superseded_by=["new", "old"])) == 3
            with store.writing() as transaction:
                found = transaction.with_derived(ALICE, ["new"], superseded=True)
                assert sorted(ids_of(found)) == ["copy", "new", "old", "older"]
                assert sorted(ids_of(transaction.with_derived(ALICE, ["new"], copies=True))) == ["copy", "new"]
                assert ids_of(transaction.with_derived(ALICE, ["new"])) == ["new"]
                new = stored("new", derived_from=("copy",)).record
                assert find_replaced(transaction, ALICE, [new]) == {"old", "older"}
            archive(store, "old")
