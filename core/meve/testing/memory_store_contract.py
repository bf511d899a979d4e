"""What every store of a memory must do: inherit the rules, give the fixture, and pytest runs them.

class TestMine(MemoryStoreContract):
    @pytest.fixture
    def opened(self, tmp_path):
        return lambda: MyStore.open(tmp_path / "memory")
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np

from meve._extras import require_imports
from meve.errors import DuplicateIdError, IndexMismatchError, StorageError
from meve.memory._audit.chain import EventDraft
from meve.memory.records import SHARED, MemoryRecord, Message, Opinion, StoredRecord, user_key, user_of
from meve.memory.stores.protocol import MemoryStore, Stretch
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest

ALICE, BOB = user_key("alice"), user_key(7)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)

OpenStore: TypeAlias = Callable[[], MemoryStore]
"""Opens the store of this test, the same each time."""


def stored(record_id: str, user: str = ALICE, **values: Any) -> StoredRecord:  # noqa: ANN401
    """A record with a vector of four."""
    made: dict[str, Any] = {"text": f"text of {record_id}", "source": "doc", "policy_class": "factual", **values}
    record = MemoryRecord(
        id=record_id, user_id=user_of(user), created_at=NOW, expires_at=made.pop("expires_at", None), **made
    )
    return StoredRecord(record=record, vector=np.array([1, 0.5, -2, 0], dtype=np.float32), tokens=5)


def event(record_id: str, user: str = ALICE, at: datetime = NOW, **values: Any) -> EventDraft:  # noqa: ANN401
    """An entry for the log."""
    return EventDraft(at=at, user=user, record=record_id, **{"action": "add", "reason": "a test", **values})


def put(store: MemoryStore, *records: StoredRecord, user: str = ALICE) -> None:
    """Insert them, in one transaction."""
    with store.writing() as transaction:
        for each in records:
            transaction.insert(user, each)
            transaction.log(event(each.record.id, user))


def said(record_id: str, user: str = ALICE, **values: Any) -> StoredRecord:  # noqa: ANN401
    """A message of session `s`."""
    made: dict[str, Any] = {"text": "", "source": "message", "session_id": "s", "metadata": {"n": 1}, **values}
    return stored(record_id, user, **made)


def read(store: MemoryStore, stretch: Stretch, user: str = ALICE) -> list[str]:
    """The ids of the messages on a stretch."""
    return [message.id for message in store.messages(user, stretch, NOW)]


class MemoryStoreContract:
    """The rules."""

    @pytest.fixture
    def opened(self) -> OpenStore:
        """Opens the store; each test has one of its own."""
        raise NotImplementedError("give a fixture `opened`")

    @pytest.fixture
    def store(self, opened: OpenStore) -> MemoryStore:
        """An empty store."""
        return opened()

    def test_a_record_comes_back_as_it_went_in_also_from_a_store_that_is_opened_again(
        self, store: MemoryStore, opened: OpenStore
    ) -> None:
        """Every value of it."""
        whole = stored(
            "a", tags=("x", "y"), metadata={"n": 1, "deep": [None, "é"]}, session_id="s", expires_at=LATER,
            reflection=12.5, touched_at=NOW, used_at=NOW, uses=3, superseded_by="b", flagged="why", derived_from=("c",),
            version=4,
        )  # fmt: skip
        put(store, whole)
        store.close()
        found = opened().find(ALICE, "a")
        assert found is not None
        assert (found.record, found.tokens) == (whole.record, 5)
        assert np.array_equal(found.vector, whole.vector)

    def test_users_never_meet(self, store: MemoryStore) -> None:
        """Neither by id, nor by changes, archive, opinions or log."""
        put(store, stored("a"))
        put(store, stored("a", BOB, text="another"), user=BOB)
        with store.writing() as transaction:
            assert transaction.erase(ALICE, "a")
            assert transaction.find(ALICE, "a") is None
        assert store.find(ALICE, "a") is None
        assert [s.record.text for _, s in store.changes(BOB, 0).records] == ["another"]
        assert store.users() == [BOB]
        assert [e.record_id for e in store.events(user=BOB)] == ["a"]

    def test_an_id_is_taken_once_archived_or_not(self, store: MemoryStore) -> None:
        """And nothing of the transaction stays."""
        put(store, stored("a"), stored("b"))
        with store.writing() as transaction:
            transaction.archive(ALICE, stored("b"))
        for taken in ("a", "b"):
            with pytest.raises(DuplicateIdError, match=taken):
                put(store, stored("c"), stored(taken))
        assert store.find(ALICE, "c") is None
        assert store.counts().events == 2

    def test_changes_tell_what_became_of_records_since_a_version(self, store: MemoryStore) -> None:
        """New, changed and gone ones; a user without any has version 0."""
        assert (store.version(ALICE), store.changes(ALICE, 0).records) == (0, ())
        put(store, stored("a"), stored("b"))
        first = store.changes(ALICE, 0)
        assert (first.version, first.whole) == (store.version(ALICE), True)
        rows = {s.record.id: row for row, s in first.records}
        with store.writing() as transaction:
            transaction.replace(ALICE, stored("a", text="changed"))
            transaction.erase(ALICE, "b")
            transaction.insert(ALICE, stored("c"))
        since = store.changes(ALICE, first.version)
        assert since.version > first.version
        assert {s.record.id: s.record.text for _, s in since.records} == {"a": "changed", "c": "text of c"}
        assert list(since.gone) == [rows["b"]]
        assert store.changes(ALICE, since.version).records == []
        assert store.changes(ALICE, since.version + 5).whole

    def test_a_row_is_never_used_again(self, store: MemoryStore) -> None:
        """Or who reads changes would take one record for another."""
        seen: set[int] = set()
        for n in range(5):
            put(store, stored(f"r{n}"))
            ((row, _),) = store.changes(ALICE, 0).records
            assert row not in seen
            seen.add(row)
            with store.writing() as transaction:
                transaction.erase(ALICE, f"r{n}")

    def test_a_recall_is_no_change_and_is_known(self, store: MemoryStore) -> None:
        """`touched` tells when."""
        put(store, stored("a"), stored("b"))
        before = store.version(ALICE)
        with store.writing(durable=False) as transaction:
            transaction.touch(ALICE, ["a", "none"], LATER)
        assert store.version(ALICE) == before
        assert store.touched(ALICE, ["a", "b", "none"]) == {"a": LATER}

    def test_what_is_archived_is_out_of_the_changes_and_can_be_found(self, store: MemoryStore) -> None:
        """Its vector may lose precision, its text may not."""
        put(store, stored("a"), stored("b", derived_from=("z",)))
        with store.writing() as transaction:
            transaction.archive(ALICE, stored("b", derived_from=("z",)))
        assert [s.record.id for _, s in store.changes(ALICE, 0).records] == ["a"]
        assert [s.record.id for s in store.archived(ALICE)] == ["b"]
        found = store.find(ALICE, "b")
        assert found is not None
        assert np.allclose(found.vector, [1, 0.5, -2, 0], atol=1e-2)
        with store.writing() as transaction:
            assert [s.record.id for s in transaction.holding(ALICE, "z")] == ["b"]
            assert transaction.erase(ALICE, "b")
        assert store.find(ALICE, "b") is None

    def test_what_is_over_is_listed_but_for_what_is_on_hold(self, store: MemoryStore) -> None:
        """At the very moment, and archived ones too."""
        put(store, stored("a", expires_at=NOW), stored("b", expires_at=NOW, hold="why"), stored("c", expires_at=LATER))
        with store.writing() as transaction:
            transaction.insert(BOB, stored("d", BOB, expires_at=NOW))
            transaction.archive(BOB, stored("d", BOB, expires_at=NOW))
        assert sorted(store.expired(NOW, 10)) == sorted([(ALICE, "a"), (BOB, "d")])
        assert len(store.expired(NOW, 1)) == 1

    def test_opinions_are_each_user_s_own_and_go_with_the_record_and_with_the_user(self, store: MemoryStore) -> None:
        """Of what is shared."""
        put(store, stored("s", SHARED), stored("t", SHARED), user=SHARED)
        rated = Opinion(reflection=60, touched_at=NOW, used_at=None, uses=1)
        with store.writing() as transaction:
            for user in (ALICE, BOB):
                transaction.rate(user, "s", rated)
            transaction.rate(ALICE, "t", rated)
            assert transaction.opinion(ALICE, "s") == rated
        assert store.opinions(BOB) == {"s": rated}
        with store.writing() as transaction:
            transaction.erase(SHARED, "s")
            transaction.forget_opinions(ALICE)
        assert (store.opinions(ALICE), store.opinions(BOB)) == ({}, {})

    def test_users_are_those_who_have_a_record(self, store: MemoryStore) -> None:
        """Not who had one, nor the shared space."""
        put(store, stored("a"))
        put(store, stored("b", BOB), user=BOB)
        put(store, stored("s", SHARED), user=SHARED)
        with store.writing() as transaction:
            found = transaction.find(ALICE, "a")
            assert found is not None
            transaction.archive(ALICE, found)
            transaction.erase(BOB, "b")
        assert store.counts().users == 1
        assert store.users() == sorted([SHARED, ALICE])

    def test_a_transaction_that_raises_leaves_nothing_in_records_or_log(self, store: MemoryStore) -> None:
        """Nor in versions."""
        put(store, stored("a"))
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

    def test_the_log_is_in_order_whole_and_found_by_what_it_holds(self, store: MemoryStore, opened: OpenStore) -> None:
        """By user, record, action and time, in a store that is opened again too."""
        put(store, stored("a"), stored("b"))
        with store.writing() as transaction:
            transaction.erase(ALICE, "a")
            transaction.log(event("a", action="delete", at=LATER, detail={"score": 1.5}))
        kept = store.head()
        store.close()
        again = opened()
        assert [e.seq for e in again.events()] == [1, 2, 3]
        assert [e.action for e in again.events(user=ALICE, record="a")] == ["add", "delete"]
        (gone,) = again.events(actions=["delete"], since=LATER)
        assert (gone.record_id, gone.detail["score"], gone.user_id) == ("a", 1.5, "alice")
        assert list(again.events(until=NOW)) == []
        assert again.verify(kept).ok
        assert again.head() == kept

    def test_many_writers_lose_nothing(self, store: MemoryStore) -> None:
        """And the log stays one chain."""

        def write(n: int) -> None:
            put(store, stored(f"r{n}"))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(40)))
        assert store.counts().records == 40
        assert store.verify().events == 40
        assert store.verify().ok

    def test_a_reader_sees_one_state_of_it(self, store: MemoryStore) -> None:
        """What a transaction changes together is seen together."""
        put(store, stored("a", uses=0), stored("b", uses=0))

        def write() -> None:
            for n in range(1, 30):
                with store.writing(durable=False) as transaction:
                    transaction.replace(ALICE, stored("a", uses=n))
                    transaction.replace(ALICE, stored("b", uses=n))

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not writing.done():
                assert len({s.record.uses for _, s in store.changes(ALICE, 0).records}) == 1
            writing.result()

    def test_vectors_are_of_one_model(self, store: MemoryStore, opened: OpenStore) -> None:
        """Told at once, and in a store that is opened again."""
        store.claim_embedder("one", 4)
        store.claim_embedder("one", 4)
        store.close()
        with pytest.raises(IndexMismatchError, match="two"):
            opened().claim_embedder("two", 4)

    def test_closed_is_closed(self, store: MemoryStore) -> None:
        """And says so."""
        store.close()
        with pytest.raises(StorageError):
            store.version(ALICE)

    def test_replacing_keeps_the_row(self, store: MemoryStore) -> None:
        """Turns of a session are in the order of their rows."""
        put(store, stored("a"), stored("b"))
        rows = {s.record.id: row for row, s in store.changes(ALICE, 0).records}
        found = store.find(ALICE, "a")
        assert found is not None
        with store.writing() as transaction:
            transaction.replace(ALICE, replace(found, record=replace(found.record, text="changed")))
        assert {s.record.id: row for row, s in store.changes(ALICE, 0).records} == rows

    def test_messages_are_read_by_user_session_and_status(self, store: MemoryStore) -> None:
        """In the order of their rows, which are their places; what is over, at the very moment, isn't among them."""
        put(
            store, said("a"), said("x", session_id="other"), said("b", tags=("archived",)), stored("no", session_id="s")
        )
        put(store, said("a", user=BOB), user=BOB)
        put(store, said("over", expires_at=NOW), said("c", expires_at=LATER))
        rows = {s.record.id: row for row, s in store.changes(ALICE, 0).records}
        found = store.messages(ALICE, Stretch(session="s", archived=None), NOW)
        assert found == [
            Message(
                id=name, session_id="s", value={"n": 1}, place=rows[name], archived=name == "b",
                added_at=said(name).record.created_at, expires_at=LATER if name == "c" else None,
            )
            for name in "abc"
        ]  # fmt: skip
        with store.writing() as transaction:
            same = transaction.messages(ALICE, Stretch(session="s", archived=None), NOW)
        assert [(place, s.record.id) for place, s in same] == [(rows[name], name) for name in "abc"]
        assert same[0][1].record == said("a").record
        for archived, ids in ((False, ["a", "c"]), (True, ["b"]), (None, ["a", "b", "c"])):
            stretch = Stretch(session="s", archived=archived)
            assert read(store, stretch) == ids
            assert store.count_messages(ALICE, stretch, NOW) == len(ids)
        assert read(store, Stretch(session="s"), user=BOB) == ["a"]
        assert store.sessions(ALICE, NOW) == ["other", "s"]
        assert store.sessions(BOB, NOW) == ["s"]
        assert store.sessions(user_key("nobody"), NOW) == []

    def test_a_page_of_messages_is_that_page(self, store: MemoryStore) -> None:
        """Counted from either end, and bounded by places."""
        put(store, *(said(name) for name in "abcde"))
        places = [message.place for message in store.messages(ALICE, Stretch(session="s"), NOW)]
        pages: list[tuple[dict[str, Any], str]] = [
            ({"limit": 2}, "ab"),
            ({"limit": 2, "offset": 1}, "bc"),
            ({"offset": 3}, "de"),
            ({"limit": 2, "newest": True}, "de"),
            ({"limit": 2, "offset": 1, "newest": True}, "cd"),
            ({"after": places[2]}, "de"),
            ({"after": places[0], "before": places[3]}, "bc"),
            ({"ids": ("d", "b", "none")}, "bd"),
            ({"ids": ()}, ""),
            ({"limit": 0}, ""),
        ]
        for asked, ids in pages:
            assert read(store, Stretch(session="s", **asked)) == list(ids)
            with store.writing() as transaction:
                found = transaction.messages(ALICE, Stretch(session="s", **asked), NOW)
            assert [s.record.id for _, s in found] == list(ids)
        assert store.count_messages(ALICE, Stretch(session="s", after=places[2], limit=1), NOW) == 2

    def test_what_several_were_made_into_is_found_at_once(self, store: MemoryStore) -> None:
        """With those themselves, each once."""
        put(store, stored("a"), stored("b"), stored("c"), stored("ab", derived_from=("a", "b")))
        with store.writing() as transaction:
            assert sorted(s.record.id for s in transaction.holding(ALICE, "a", "b")) == ["a", "ab", "b"]
            assert transaction.holding(ALICE) == []
