"""`audit.verify` finds and names records that were changed, removed or added behind the log."""

import json
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meve.memory._audit.chain import AuditChain
from meve.memory._audit.record_state import GROUPS, hash_state
from meve.memory.records import MemoryRecord
from meve.memory.stores.sqlite._rows import pack
from meve.testing.dict_memory_store import DictMemoryStore
from meve.testing.fakes import FakeClock
from tests.memories import KEY, open_memory, run_sql

FILES = Path(__file__).parent.parent / "files" / "before_kind.zip"


def fill(memory):
    """Add records of every kind; `milk` is closed, and `old` archived."""
    memory.add("I am allergic to milk.", user_id="alice", id="milk", tags=["food"], session_id="s1")
    memory.add("I live in Lyon.", user_id="alice", id="home", ttl=timedelta(days=9))
    memory.add("I live in Oslo.", user_id="alice", id="old")
    memory.add("I live in Rome.", user_id="bob", id="rome")
    memory.add_shared("The office opens at 9.", id="office")
    memory.items.put(("prefs",), "theme", {"dark": True, "size": 1.0}, user_id="alice")
    memory.messages.add("s1", [{"role": "user", "text": "Hello."}], user_id="alice", ids=["m1"])
    with memory._runtime.store.writing() as transaction:
        for record_id, changes in (("old", {"archived": True}), ("milk", {"superseded_by": "home"})):
            stored = transaction.find("s:alice", record_id)
            record = replace(stored.record, **changes)
            transaction.replace("s:alice", replace(stored, record=record))
        transaction.log(memory._runtime.event("s:alice", record, "supersede", "a test", memory.clock.now()))
    recall = memory.search("Where do I live?", user_id="alice")
    memory.reflect(recall, answer="In Lyon.")


@pytest.fixture
def filled(file, clock):
    with open_memory(file, clock=clock) as memory:
        fill(memory)
    return file


def find_differences(file, clock):
    with open_memory(file, clock=clock) as memory:
        result = memory.audit.verify()
    assert result.ok is not bool(result.differences)
    return {(each.user_id, each.record_id): each.differs for each in result.differences}


def test_untouched_records_agree_with_the_log_on_every_store(file, clock):
    for memory in (open_memory(file, clock=clock), open_memory(None, store=DictMemoryStore(), clock=clock)):
        with memory:
            fill(memory)
            result = memory.audit.verify()
            assert (result.ok, result.records, result.not_covered, result.differences) == (True, 7, 0, ())


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("text = 'I like milk.'", ("text",)),
        ("text = CAST(x'ff' AS TEXT)", ("unreadable",)),
        ("expires = expires + 1", ("expiry",)),
        ("expires = NULL", ("expiry",)),
        ("hold = 'case 12'", ("hold",)),
        ("class = 'canonical'", ("class",)),
        ("kind = 'nothing'", ("unreadable",)),
        ("tags = '[\"food\"]'", ("metadata",)),
        ("metadata = '{\"n\": 1}'", ("metadata",)),
        ("session = 's9'", ("metadata",)),
        ("created = created - 1", ("history",)),
        ("valid_to = 5", ("history",)),
        ("superseded = 'rome'", ("history",)),
        ("archived = 1", ("history",)),
        ("reflection = 0", ("score",)),
        ("version = 9", ("other",)),
        ("text = 'x', hold = 'y'", ("text", "hold")),
    ],
)
def test_changed_record_is_named_with_what_differs(filled, clock, change, differs):
    run_sql(filled, f"UPDATE memories SET {change} WHERE id = 'home'")
    assert find_differences(filled, clock) == {("alice", "home"): differs}


@pytest.mark.parametrize(
    ("statement", "record_id", "differs"),
    [
        ("UPDATE memories SET text = 'I live in Kiel.' WHERE id = 'home'", "home", "text"),
        ("UPDATE memories SET expires = NULL WHERE id = 'home'", "home", "expiry"),
        ("UPDATE memories SET source = 'doc' WHERE id = 'home'", "home", "class"),
        ("UPDATE memories SET id = 'other' WHERE id = 'home'", "other", "planted"),
    ],
)
def test_change_behind_the_log_is_still_found_after_the_memory_wrote_the_record(
    filled, clock, statement, record_id, differs
):
    run_sql(filled, statement)
    with open_memory(filled, clock=clock) as memory:
        recall = memory.search("Where do I live?", user_id="alice")
        assert record_id in {record.id for record in recall.records}
        memory.reflect(recall, answer="In Lyon.")
    assert differs in find_differences(filled, clock)["alice", record_id]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM memories WHERE id = 'home'", {("alice", "home"): ("missing",)}),
        ("DELETE FROM archive", {("alice", "old"): ("missing",)}),
        ("DELETE FROM memories WHERE id = 'm1'", {("alice", "m1"): ("missing",)}),
        ("UPDATE memories SET superseded = NULL WHERE id = 'milk'", {("alice", "milk"): ("history",)}),
        ("UPDATE memories SET id = 'new' WHERE id = 'rome'",
         {("bob", "rome"): ("missing",), ("bob", "new"): ("planted",)}),
        ("UPDATE memories SET user = (SELECT no FROM users WHERE key = 's:bob') WHERE id = 'milk'",
         {("alice", "milk"): ("owner",)}),
        ("UPDATE users SET key = 'i:7' WHERE key = 's:bob'", {("bob", "rome"): ("owner",)}),
        ("UPDATE archive SET body = x'00'", {("alice", "old"): ("unreadable",)}),
        ("UPDATE memories SET text = 'It closes.' WHERE id = 'office'", {(None, "office"): ("text",)}),
    ],
)  # fmt: skip
def test_removed_planted_and_moved_records_are_named(filled, clock, statement, expected):
    run_sql(filled, statement)
    assert find_differences(filled, clock) == expected


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("id = 'other'", "other"),
        ("expires = 5", "expiry"),
        ("hold = 1", "hold"),
        ("derived = '[\"rome\"]'", "history"),
        ("superseded = 'home'", "history"),
    ],
)
def test_changed_column_of_the_archive_is_named(filled, clock, change, differs):
    """Expiry and erasure find archived records by these columns, without reading the records."""
    run_sql(filled, f"UPDATE archive SET {change} WHERE id = 'old'")
    assert find_differences(filled, clock) == {("alice", "old"): (differs,)}


def test_planted_archived_copy_is_found(filled, clock):
    with open_memory(filled, clock=clock) as memory:
        body = pack(memory._runtime.store.find("s:bob", "rome"))
    with closing(sqlite3.connect(filled)) as connection, connection:
        values = "no, 'rome', NULL, 0, ?, '[]', NULL"
        connection.execute(f"INSERT INTO archive SELECT {values} FROM users WHERE key = 's:bob'", (body,))
    assert find_differences(filled, clock) == {("bob", "rome"): ("planted",)}


def test_erased_record_that_is_put_back_is_found(filled, clock):
    with closing(sqlite3.connect(filled)) as connection, connection:
        row = connection.execute("SELECT * FROM memories WHERE id = 'rome'").fetchone()
    with open_memory(filled, clock=clock) as memory:
        memory.forget_user(user_id="bob")
        assert memory.audit.verify().ok
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute(f"INSERT INTO memories VALUES ({', '.join('?' * len(row))})", row)
    assert find_differences(filled, clock) == {("bob", "rome"): ("planted",)}


def test_result_and_log_hold_no_content(filled, clock):
    run_sql(filled, "UPDATE memories SET text = 'I like milk.', hold = 'secret case' WHERE id = 'home'")
    with open_memory(filled, clock=clock) as memory:
        shown = repr(memory.audit.verify()) + json.dumps([e.to_dict() for e in memory.audit.events()])
    assert not any(word in shown for word in ("milk.", "Lyon", "secret", "food"))


def test_equal_records_of_two_users_have_different_hashes():
    record = MemoryRecord(
        id="x", user_id="alice", text="Same.", source="doc", policy_class="factual",
        created_at=datetime(2026, 5, 1, tzinfo=UTC), expires_at=None,
    )  # fmt: skip
    chain = AuditChain(KEY)
    alice, bob = (hash_state(chain, user, record) for user in ("s:alice", "s:bob"))
    assert len(alice) == 32 + 4 * len(GROUPS)
    assert alice[:32] != bob[:32]
    assert alice != hash_state(AuditChain(b"another key of 16 bytes"), "s:alice", record)


def test_broken_log_compares_no_records(filled, clock):
    run_sql(filled, "UPDATE audit SET reason = 'x' WHERE seq = 2", "UPDATE memories SET text = 'x' WHERE id = 'home'")
    with open_memory(filled, clock=clock) as memory:
        result = memory.audit.verify()
    assert (result.ok, result.broken_at, result.records, result.differences) == (False, 2, 0, ())


def test_records_are_not_covered_without_a_key(file, clock):
    with open_memory(file, clock=clock, audit_key=None) as memory:
        fill(memory)
        result = memory.audit.verify()
        assert (result.ok, result.keyed, result.records, result.not_covered) == (True, False, 0, 7)
        assert all("state" not in event.detail for event in memory.audit.events())


def test_records_of_an_older_file_are_not_covered_until_they_change(tmp_path):
    with zipfile.ZipFile(FILES) as files:
        file = Path(files.extract("memory.db", tmp_path))
    clock = FakeClock(datetime(2026, 5, 1, 12, 5, tzinfo=UTC))
    with open_memory(file, clock=clock, embedder=None) as memory:
        before = memory.audit.verify()
        assert (before.ok, before.records, before.differences) == (True, 0, ())
        memory.hold("tea", user_id="alice")
        after = memory.audit.verify()
        assert (after.ok, after.records, after.not_covered) == (True, 1, before.not_covered - 1)
    run_sql(
        file, "UPDATE memories SET text = 'x' WHERE id = 'tea'", "UPDATE memories SET id = 'sneaked' WHERE id = 'bees'"
    )
    with open_memory(file, clock=clock, embedder=None) as memory:
        differences = {each.record_id: each.differs for each in memory.audit.verify().differences}
    assert differences == {"tea": ("text",), "sneaked": ("planted",)}
