"""A file of version 3 of the schema, made before records had a kind."""

import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from meve.testing.fakes import FakeClock
from tests.memories import KEY, LATER_COLUMNS, archive, as_plain, as_version_3, open_memory, read_sql

FILES = Path(__file__).parent.parent / "files" / "before_kind.zip"
QUESTION = "What does Alice prefer to drink?"
ITEMS = ['[["prefs","ui"],"theme"]', '[["prefs",7],"lang"]']


@pytest.fixture
def older_file(tmp_path):
    with zipfile.ZipFile(FILES) as files:
        return Path(files.extract("memory.db", tmp_path))


@pytest.fixture
def older(older_file):
    with GovernedMemory.open(older_file, clock=FakeClock(datetime(2026, 5, 1, 12, 5, tzinfo=UTC)), audit_key=KEY) as it:
        yield it


def test_new_file_has_the_tables_of_a_migrated_one(older_file, tmp_path):
    parts = []
    for file in (older_file, tmp_path / "new.db"):
        open_memory(file, embedder=None, tokens=None).close()
        (version,) = read_sql(file, "PRAGMA user_version")
        parts.append((version, sorted(read_sql(file, "SELECT type, name, tbl_name, sql FROM sqlite_master"), key=repr)))
    assert parts[0] == parts[1]


def test_records_have_their_kind_and_come_back_whole(older):
    records = {r.id: r for r in older.list(user_id="alice", include_archived=True)}
    kinds = {r.id: r.kind for r in records.values() if r.kind != "message"}
    assert kinds == dict.fromkeys(["sun", "lyon", "bank", "tea", "held"], "fact") | {
        "sum": "summary",
        **dict.fromkeys(ITEMS, "item"),
    }
    assert records["sum"].derived_from == ("lyon", "tea")
    assert (records["held"].hold, records["tea"].session_id, records["tea"].metadata) == ("held", "s1", {"n": 1})
    assert (records["tea"].reflection, records["tea"].uses, records["sun"].tags) == (40, 1, ("gardening",))
    assert [r.text for r in older.list(user_id="bob")] == ["Bob keeps bees."]


def test_search_isolation_and_shared_scores_work(older):
    assert {"tea", "sum"} <= {r.id for r in older.search(QUESTION, user_id="alice").records}
    bobs = {r.id for r in older.search("Bees and the bank?", user_id="bob", include_private=True).records}
    assert "bees" in bobs <= {"bees", "office"}
    assert "bank" not in {r.id for r in older.search("Which bank?", user_id="alice").records}
    assert "bank" in {r.id for r in older.search("Which bank?", user_id="alice", include_private=True).records}
    (office,) = older.explain("When does the office open?", user_id="bob", limit=1)
    assert (office.record.id, office.reflection) == ("office", 50)
    assert older.export(user_id="alice")["shared_scores"]["office"]["reflection"] == 60


def test_items_are_read_and_replaced(older):
    assert older.items.get(("prefs", "ui"), "theme", user_id="alice").value == {"dark": True, "size": 12}
    assert sorted(older.items.namespaces(user_id="alice"), key=str) == [("prefs", "ui"), ("prefs", 7)]
    older.items.put(("prefs", 7), "lang", {"fr": 2}, user_id="alice")
    assert [i.value for i in older.items.search(("prefs", 7), user_id="alice")] == [{"fr": 2}]


def test_messages_are_paged_and_the_archived_one_is_apart(older):
    page = older.messages.page("s1", user_id="alice")
    assert [(m.value["text"], m.archived) for m in page] == [("Hi, Alice.", False), ("What do I drink?", False)]
    (archived,) = older.messages.page("s1", user_id="alice", archived=True)
    assert (archived.value, archived.archived) == ({"role": "user", "text": "Hello."}, True)
    assert older.messages.count("s1", user_id="alice", archived=None) == 3
    assert older.get(archived.id, user_id="alice").tags == ()
    older.messages.add("s1", [{"text": "Tea."}], user_id="alice")
    assert older.messages.page("s1", user_id="alice", archived=None)[-1].value == {"text": "Tea."}


def test_audit_chain_holds_and_goes_on(older):
    assert older.audit.verify().events == 23
    older.add("More.", user_id="alice")
    assert (older.audit.verify().ok, older.audit.verify().events) == (True, 24)


def test_export_and_erasure_hold_everything(older):
    data = older.export(user_id="alice")
    assert (len(data["records"]), len(data["archived"])) == (10, 1)
    assert set(older.delete("lyon", user_id="alice").erased) == {"lyon", "sum"}
    forgotten = older.forget_user(user_id="alice")
    assert (len(forgotten.erased), forgotten.held) == (8, {"held": "held"})
    with pytest.raises(UnknownIdError):
        older.get("tea", user_id="alice")


def test_compressed_archived_record_is_migrated(tmp_path, clock):
    file = tmp_path / "memory.db"
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        memory.add("Tea is hot.", user_id="alice", id="tea", source="summary", tags=["drink"], ttl=timedelta(days=9))
        archive(memory, "s:alice", "tea")
        whole = replace(memory.get("tea", user_id="alice"), valid_from=None)
    as_plain(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.create_function("as_version_3", 1, as_version_3)
        connection.execute("UPDATE archive SET body = as_version_3(body)")
        connection.execute("DROP INDEX memories_message")
        for index in ("memories_superseded", "archive_superseded"):
            connection.execute(f"DROP INDEX {index}")
        for column in LATER_COLUMNS:
            connection.execute(f"ALTER TABLE memories DROP COLUMN {column}")
        connection.execute("ALTER TABLE archive DROP COLUMN superseded")
        connection.execute("CREATE INDEX memories_message ON memories (user) WHERE source = 'message'")
        connection.execute("PRAGMA user_version = 3")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        assert memory.get("tea", user_id="alice") == whole
        assert (whole.kind, whole.archived) == ("summary", True)
