"""`audit.verify` finds and names records that were changed, removed or added behind the log."""

import json
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meve.memory._audit.chain import AuditChain
from meve.memory._audit.record_state import GROUPS, LoggedStates, hash_state
from meve.memory.records import MemoryRecord
from meve.memory.stores import _record_transaction
from meve.memory.stores.protocol import RecordQuery
from meve.testing.dict_memory_store import DictMemoryStore
from meve.testing.fakes import FakeClock
from tests.memories import KEY, change_sealed, open_memory, plant, read_stored, run_sql

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
    ("changes", "differs"),
    [
        ({"text": "I like milk."}, ("text",)),
        ({"text": "\udcff"}, ("unreadable",)),
        ({"hold": "case 12"}, ("hold",)),
        ({"tags": '["food"]'}, ("metadata",)),
        ({"metadata": '{"n": 1}'}, ("metadata",)),
        ({"session": "s9"}, ("metadata",)),
        ({"superseded": "rome"}, ("history",)),
        ({"text": "x", "hold": "y"}, ("text", "hold")),
    ],
)
def test_record_that_was_changed_with_the_keys_is_named_with_what_differs(filled, clock, changes, differs):
    change_sealed(filled, "alice", "home", **changes)
    assert find_differences(filled, clock) == {("alice", "home"): differs}


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("expires = expires + 1", ("expiry",)),
        ("expires = NULL", ("expiry",)),
        ("class = 'canonical'", ("class",)),
        ("kind = 'nothing'", ("unreadable",)),
        ("created = created - 1", ("history",)),
        ("valid_to = 5", ("history",)),
        ("archived = 1", ("history",)),
        ("reflection = 0", ("score",)),
        ("version = 9", ("other",)),
        ("sealed = zeroblob(90)", ("missing",)),
        ("sealed = substr(sealed, 1, 200)", ("unreadable",)),
        ("sealed = (SELECT sealed FROM memories WHERE id = {alice/m1})", ("missing",)),
        ("hold = 1", ("unreadable",)),
        ("session = {alice/m1}", ("unreadable",)),
        ("superseded = {alice/m1}", ("unreadable",)),
        ("derived = '[\"x\"]'", ("unreadable",)),
    ],
)
def test_changed_column_is_named_with_what_differs(filled, clock, change, differs):
    run_sql(filled, f"UPDATE memories SET {change} WHERE id = {{alice/home}}")
    assert find_differences(filled, clock) == {("alice", "home"): differs}


@pytest.mark.parametrize(
    ("change", "record_id", "differs"),
    [
        ({"text": "I live in Kiel."}, "home", "text"),
        ("expires = NULL", "home", "expiry"),
        ("source = 'doc'", "home", "class"),
        ({"id": "other"}, "other", "planted"),
    ],
)
def test_change_behind_the_log_is_still_found_after_the_memory_wrote_the_record(
    filled, clock, change, record_id, differs
):
    if isinstance(change, dict):
        change_sealed(filled, "alice", "home", **change)
    else:
        run_sql(filled, f"UPDATE memories SET {change} WHERE id = {{alice/home}}")
    with open_memory(filled, clock=clock) as memory:
        recall = memory.search("Where do I live?", user_id="alice")
        assert record_id in {record.id for record in recall.records}
        memory.reflect(recall, answer="In Lyon.")
    assert differs in find_differences(filled, clock)["alice", record_id]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM memories WHERE id = {alice/home}", {("alice", "home"): ("missing",)}),
        ("DELETE FROM archive", {("alice", "old"): ("missing",)}),
        ("DELETE FROM memories WHERE id = {alice/m1}", {("alice", "m1"): ("missing",)}),
        ("UPDATE memories SET superseded = NULL WHERE id = {alice/milk}", {("alice", "milk"): ("unreadable",)}),
        ("UPDATE archive SET body = substr(body, 1, 90)", {("alice", "old"): ("unreadable",)}),
    ],
)
def test_removed_records_and_links_are_named(filled, clock, statement, expected):
    run_sql(filled, statement)
    assert find_differences(filled, clock) == expected


def test_changed_owner_is_found(filled, clock):
    """What is sealed for one user can't be read as another's."""
    run_sql(filled, "UPDATE memories SET user = (SELECT no FROM users WHERE key = {bob/}) WHERE id = {alice/milk}")
    found = find_differences(filled, clock)
    assert found.pop(("alice", "milk")) == ("missing",)
    assert [(user, differs) for (user, _), differs in found.items()] == [("bob", ("unreadable",))]


def test_record_moved_with_the_keys_is_named(filled, clock):
    moved = read_stored(filled, "bob", "rome")
    with open_memory(filled, clock=clock) as memory:
        backend = memory._runtime.store.backend
        with backend.writing() as transaction:
            transaction.remove("s:bob", "rome")
            transaction.put("s:alice", moved)
    assert find_differences(filled, clock) == {("bob", "rome"): ("owner",)}


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ("expires = 5", ("expiry",)),
        ("hold = 1", ("unreadable",)),
        ("derived = '[\"rome\"]'", ("unreadable",)),
        ("superseded = 'home'", ("unreadable",)),
    ],
)
def test_changed_column_of_the_archive_is_named(filled, clock, change, differs):
    """Expiry and erasure find archived records by these columns."""
    run_sql(filled, f"UPDATE archive SET {change} WHERE id = {{alice/old}}")
    assert find_differences(filled, clock) == {("alice", "old"): differs}


def test_planted_archived_copy_is_found(filled, clock):
    plant(filled, "bob", read_stored(filled, "bob", "rome"), id="copy", archived=True)
    assert find_differences(filled, clock) == {("bob", "copy"): ("planted",)}


def test_erased_record_that_is_put_back_is_found(filled, clock):
    kept = read_stored(filled, "bob", "rome")
    with open_memory(filled, clock=clock) as memory:
        memory.forget_user(user_id="bob")
        assert memory.audit.verify().ok
    plant(filled, "bob", kept)
    assert find_differences(filled, clock) == {("bob", "rome"): ("planted",)}


def meanwhile(change):
    """Return a method of `LoggedStates` that makes a change, once, before it reads the records."""
    done = []

    def wrap(method):
        def late(self, snapshot, *arguments):
            if not done:
                done.append(True)
                list(snapshot.records(RecordQuery(user="s:bob")))  # from here on, the snapshot stands
                change()
            return method(self, snapshot, *arguments)

        return late

    return wrap


@pytest.mark.parametrize("change", ["delete", "update"])
def test_record_that_another_process_changes_meanwhile_is_no_difference(filled, clock, monkeypatch, change):
    """Its key is gone, so the records are read in a later state than the log."""
    with open_memory(filled, clock=clock) as memory, open_memory(filled, clock=clock) as other:

        def act():
            other.add("I live in Bonn.", user_id="alice", id="new")
            if change == "delete":
                other.delete("home", user_id="alice")
            else:
                other.items.put(("prefs",), "theme", {"dark": False}, user_id="alice")

        compare = meanwhile(act)(LoggedStates.compare)
        monkeypatch.setattr(LoggedStates, "compare", compare)
        assert memory.audit.verify().ok
        assert memory.audit.verify().events == memory.audit.head().seq


def test_record_that_is_added_during_the_check_of_a_certificate_is_not_planted(filled, clock, monkeypatch):
    with open_memory(filled, clock=clock) as memory, open_memory(filled, clock=clock) as other:
        memory.delete("milk", user_id="alice")
        certificate = memory.audit.certificate(user_id="alice")

        def act():
            other.add("I live in Bonn.", user_id="alice", id="new")
            other.delete("home", user_id="alice")

        monkeypatch.setattr(LoggedStates, "find_planted", meanwhile(act)(LoggedStates.find_planted))
        assert memory.audit.check_certificate(certificate).ok


def test_result_and_log_hold_no_content(filled, clock):
    change_sealed(filled, "alice", "home", text="I like milk.", hold="secret case")
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
    parts = [slice(0, 32), *(slice(n, n + 4) for n in range(32, len(alice), 4))]
    assert not [part for part in parts if alice[part] == bob[part]]
    assert alice != hash_state(AuditChain(b"another key of 16 bytes"), "s:alice", record)


def test_record_whose_state_an_earlier_version_logged_is_changed_and_still_agrees(file, clock, monkeypatch):
    """Earlier versions hashed the parts of a state without its owner; only the hash of the whole decides."""

    def hash_as_before(chain, user, record):
        return hash_state(chain, user, record)[:32] + "0" * 32

    monkeypatch.setattr(_record_transaction, "hash_state", hash_as_before)
    with open_memory(file, clock=clock) as memory:
        memory.add("I live in Lyon.", user_id="alice", id="home")
    monkeypatch.undo()
    assert find_differences(file, clock) == {}
    with open_memory(file, clock=clock) as memory:
        memory.hold("home", user_id="alice", reason="a test")
    assert find_differences(file, clock) == {}
    change_sealed(file, "alice", "home", text="I live in Rome.")
    assert set(find_differences(file, clock)) == {("alice", "home")}


def test_broken_log_compares_no_records(filled, clock):
    run_sql(filled, "UPDATE audit SET reason = 'x' WHERE seq = 2", "UPDATE memories SET created = 1")
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
    change_sealed(file, "alice", "tea", text="x")
    change_sealed(file, "bob", "bees", id="sneaked")
    with open_memory(file, clock=clock, embedder=None) as memory:
        differences = {each.record_id: each.differs for each in memory.audit.verify().differences}
    assert differences == {"tea": ("text",), "sneaked": ("planted",)}
