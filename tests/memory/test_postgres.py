"""A memory in a PostgreSQL database: tenants, row-level security, keys, and a server that fails."""

import os
import re
from contextlib import ExitStack
from datetime import timedelta
from urllib.parse import quote

import pytest

from meve import _postgres
from meve.errors import (
    ConfigurationError,
    KeyFileError,
    StorageError,
    StoreBusyError,
    StoreCorruptError,
    StoreVersionError,
)
from meve.memory import GovernedMemory
from meve.memory.records import user_key
from meve.memory.stores._sql.key_file import Slots
from meve.memory.stores._sql.vault import Vault
from meve.memory.stores.postgresql import _database, _schema
from tests.memories import KEY, open_memory
from tests.memory.sealed_files import Workload, sentinels
from tests.postgres import MemoryUrl
from tests.warm_process import execute, warm_process

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")


@pytest.fixture
def url(postgres_url, tmp_path):
    return MemoryUrl(postgres_url, tmp_path / "memory.keys")


def of_tenant(url, tenant, **options):
    return open_memory(url, tenant=tenant, key_file=url.keys.with_name(f"{tenant}.keys"), **options)


def run(url, statement, values=()):
    """Return the rows of a statement that runs beside the memory."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def everything(url):
    """Return all that the tables hold, as one text of bytes; of binary columns, the bytes."""
    tables = [table for (table,) in run(url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")]
    values = [value for table in tables for row in run(url, f"SELECT * FROM {table}") for value in row]
    return b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


def ids(memory, user="alice"):
    return [record.id for record in memory.list(user_id=user)]


def test_tenants_of_a_database_share_nothing(url):
    with of_tenant(url, "acme") as acme, of_tenant(url, "other") as other:
        for memory in (acme, other):
            for name in ("one", "two", "three"):
                memory.add(f"Bread {name}.", user_id="alice", id=name, source="doc")
            memory.items.put(("prefs",), "theme", {"dark": True}, user_id="alice")
            memory.add_shared("The office opens at 9.", id="office")
        acme.delete("one", user_id="alice")
        acme.forget_user(user_id="alice")
        assert ids(acme) == []
        assert ids(other)[:3] == ["one", "two", "three"]
        assert other.items.get(("prefs",), "theme", user_id="alice").value == {"dark": True}
        assert (acme.stats().users, other.stats().users) == (0, 1)
        assert acme.audit.verify().ok
        assert other.audit.verify().ok
        assert len(list(other.audit.events())) == 5
    with pytest.raises(KeyFileError, match="holds the keys of another memory"):
        open_memory(url, tenant="acme", key_file=url.keys.with_name("other.keys"))
    with pytest.raises(KeyFileError, match="if it is another tenant's, give this one a key_file of its own"):
        open_memory(url, tenant="third", key_file=url.keys.with_name("other.keys"))


def test_every_key_begins_with_the_tenant(url):
    open_memory(url).close()
    keys = run(
        url,
        "SELECT c.relname, pg_get_indexdef(i.indexrelid, 1, TRUE) FROM pg_index AS i JOIN pg_class AS c "
        "ON c.oid = i.indrelid WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'meve%%'",
    )
    tables = {f"meve_{table}" for table in _schema.TABLES}
    assert {table for table, _ in keys} == tables | {"meve_tenants"}
    assert {first for table, first in keys if table in tables} == {"tenant"}


def test_statement_without_a_tenant_is_refused():
    with pytest.raises(AssertionError, match="names no tenant"):
        _database._translate(7, "SELECT no FROM users WHERE key = ?")


def test_row_level_security_hides_other_tenants_from_statements_without_a_check(url, monkeypatch):
    """A memory whose statements name no tenant any more, as by a mistake in one of them."""
    role = f"app_{os.getpid()}_{id(url)}"
    run(url, f"CREATE ROLE {role} LOGIN")
    try:
        run(url, f"DO $$ BEGIN EXECUTE 'GRANT ALL ON SCHEMA ' || current_schema() || ' TO {role}'; END $$")
        app = MemoryUrl(url.replace("meve@", f"{role}@"), url.keys)
        with of_tenant(app, "acme") as acme:
            acme.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        right = _database._translate
        monkeypatch.setattr(
            _database, "_translate",
            lambda tenant, statement: right(tenant, statement.replace("tenant = :tenant", ":tenant = :tenant")),
        )  # fmt: skip
        with of_tenant(app, "other") as other:
            other.add("Rye is baked.", user_id="bob", id="rye", source="doc")
            assert other.stats().records == 1
            assert len(list(other.audit.events())) == 1
            assert ids(other, "bob") == ["rye"]
            database = other._runtime.store.backend._database
            with database.writing() as connection:
                connection.execute("DELETE FROM memories WHERE tenant = :tenant")
            planted = "INSERT INTO meta (tenant, name, value) VALUES (:tenant - 1, 'x', 'y')"
            with pytest.raises(StorageError, match="row-level security"), database.writing() as connection:
                connection.execute(planted)
        monkeypatch.undo()
        with of_tenant(app, "acme") as acme:
            assert ids(acme) == ["bread"]
    finally:
        run(url, f"DROP OWNED BY {role} CASCADE")
        run(url, f"DROP ROLE {role}")


def test_nothing_readable_stands_in_the_database(url, clock):
    with open_memory(url, clock=clock) as memory:
        work = Workload(memory)
        for _ in range(40):
            work.add()
        words = [word.encode() for n in range(work.count) for word in sentinels(n)]
        stored = everything(url).lower()
        assert [word for word in words if word in stored] == []


@pytest.mark.parametrize("change", ["delete", "forget", "expire", "update"])
def test_no_key_opens_what_a_backup_holds_of_an_erased_record(url, clock, change):
    with open_memory(url, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s", ttl=timedelta(hours=1))
        memory.add("I like tea.", user_id="bob", id="tea")
        ((sealed,),) = run(url, "SELECT sealed FROM meve_memories ORDER BY row LIMIT 1")
        with memory._runtime.store.backend._keys.slots() as slots:
            assert any(slots.fits(n, sealed) for n in range(slots.count()))
        if change == "delete":
            memory.delete("s", user_id="alice")
        elif change == "forget":
            memory.forget_user(user_id="alice")
        elif change == "update":
            memory.update("s", user_id="alice", text="Another text.")
        else:
            clock.advance(timedelta(hours=2))
            memory.maintain()
    with memory._runtime.store.backend._keys.slots() as slots:
        assert not any(slots.fits(n, sealed) for n in range(slots.count()))


def test_connection_cut_in_a_transaction_changes_nothing(url):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")

        def erase_and_lose_the_connection():
            with memory._runtime.store.writing() as transaction:
                transaction.erase("s:alice", transaction.find("s:alice", "bread").record)
                connection = transaction._transaction._vault.connection
                ((pid,),) = connection.execute("SELECT pg_backend_pid() -- :tenant").fetchall()
                run(url, "SELECT pg_terminate_backend(%s)", (pid,))
                transaction.find("s:alice", "bread")

        with pytest.raises(StorageError, match="can't be used"):
            erase_and_lose_the_connection()
        assert ids(memory) == ["bread"]
        memory.add("Rye is baked.", user_id="alice", id="rye", source="doc")
        assert memory.audit.verify().ok


def test_writer_that_waits_too_long_gets_an_error_and_changes_nothing(url, monkeypatch):
    monkeypatch.setattr(_database, "WAIT_SECONDS", 0.2)
    with open_memory(url) as memory, psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM meve_tenants FOR UPDATE")
        assert ids(memory) == []
        with pytest.raises(StoreBusyError, match="try again"):
            memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        other.rollback()
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        assert ids(memory) == ["bread"]


def test_reader_whose_record_is_erased_meanwhile_reads_the_newest_state(url):
    with open_memory(url) as memory, open_memory(url) as other:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        memory.add("Rye is baked.", user_id="alice", id="rye", source="doc")
        with memory._runtime.store.backend.reading() as snapshot:
            assert snapshot.version("s:alice") == 2
            other.delete("rye", user_id="alice")
            assert [each.record.id for each in snapshot.records(_all_of("alice"))] == ["bread"]


def _all_of(user):
    from meve.memory.stores.protocol import RecordQuery

    return RecordQuery(user=user_key(user))


def test_processes_that_open_a_new_memory_at_once_agree(url):
    code = """
import sys
from tests.memories import as_place, open_memory
with open_memory(as_place(sys.argv[1])) as memory:
    memory.add(f"fact {sys.argv[2]}", user_id="alice", id=sys.argv[2])
"""
    place = f"{url}|{url.keys}"
    with ExitStack() as stack:
        running = [stack.enter_context(warm_process(execute, code, place, n)) for n in range(3)]
        assert [output.read() for _, output in running] == [""] * 3
    with open_memory(url) as memory:
        assert sorted(ids(memory)) == ["0", "1", "2"]
        assert memory.audit.verify().ok


def test_tables_that_are_partitioned_by_tenant_need_no_other_statements(url, monkeypatch, clock):
    def partitioned(statements):
        for statement in statements:
            table = re.match(r"\s*CREATE TABLE (meve_\w+)", statement)
            if table is None or table[1] == "meve_tenants":
                yield statement
            else:
                yield f"{statement} PARTITION BY HASH (tenant)"
                for n in range(3):
                    yield (
                        f"CREATE TABLE {table[1]}_{n} PARTITION OF {table[1]} "
                        f"FOR VALUES WITH (MODULUS 3, REMAINDER {n})"
                    )

    monkeypatch.setattr(_database, "MIGRATIONS", [list(partitioned(each)) for each in _schema.MIGRATIONS])
    for tenant in ("a", "b", "c"):
        with of_tenant(url, tenant, clock=clock) as memory:
            work = Workload(memory)
            for _ in range(12):
                work.add()
            memory.maintain()
            memory.forget_user(user_id="user1qzx")
            assert memory.audit.verify().ok
    used = {n for (n,) in run(url, "SELECT DISTINCT tableoid FROM meve_memories")}
    assert len(used) > 1


def test_commit_is_on_the_disk_although_the_server_is_set_up_otherwise(url):
    lazy = MemoryUrl(f"{url}{quote(' -csynchronous_commit=off')}", url.keys)
    assert run(lazy, "SHOW synchronous_commit") == [("off",)]
    with open_memory(lazy) as memory:
        database = memory._runtime.store.backend._database
        for durable, setting in ((True, "on"), (False, "off"), (True, "on")):
            with database.writing(durable=durable) as connection:
                shown = connection.execute("SHOW synchronous_commit -- :tenant").fetchall()
            assert shown == [(setting,)]


def test_database_of_an_older_version_is_migrated_and_a_newer_one_refused(url, monkeypatch):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
    newest = [
        *_schema.MIGRATIONS,
        ["ALTER TABLE meve_memories ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'"],
        ["ALTER TABLE meve_memories RENAME COLUMN colour TO color"],
    ]
    with monkeypatch.context() as patch:
        patch.setattr(_database, "MIGRATIONS", newest)
        for _ in range(2):
            with open_memory(url) as memory:
                assert ids(memory) == ["bread"]
                assert memory.audit.verify().ok
    assert run(url, "SELECT color FROM meve_memories") == [("grey",)]
    assert run(url, "SELECT version FROM meve_version") == [(4,)]
    with pytest.raises(StoreVersionError, match="is of version 4, and this meve knows versions up to 2: upgrade meve"):
        open_memory(url)


def test_migration_that_fails_changes_nothing(url, monkeypatch):
    open_memory(url).close()
    broken = [*_schema.MIGRATIONS, ["ALTER TABLE meve_memories ADD COLUMN colour TEXT", "DROP TABLE meve_none"]]
    with monkeypatch.context() as patch:
        patch.setattr(_database, "MIGRATIONS", broken)
        with pytest.raises(StorageError, match="meve_none"):
            open_memory(url)
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        assert ids(memory) == ["bread"]


def test_writer_whose_tenant_has_no_row_any_more_is_refused(url):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        run(url, "DELETE FROM meve_tenants")
        with pytest.raises(StoreCorruptError, match="lacks the row of tenant number 1: restore it from a backup"):
            memory.add("Rye is baked.", user_id="alice", id="rye", source="doc")
        run(url, "INSERT INTO meve_tenants (no, name) OVERRIDING SYSTEM VALUE VALUES (1, 'default')")
        memory.add("Rye is baked.", user_id="alice", id="rye", source="doc")
        assert ids(memory) == ["bread", "rye"]


def test_failed_key_is_reported_and_made_up_for_at_the_next_opening(url, monkeypatch):
    with open_memory(url) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")

        def fail(self, slots, changes):
            raise KeyFileError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "renew", fail)
            with pytest.raises(StorageError, match="keys of what it erased still stand"):
                memory.delete("s", user_id="alice")
    with open_memory(url) as memory, memory._runtime.store.backend.reading() as snapshot:
        assert not Vault(snapshot._connection, None, None).has_released()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs key_file"),
        ({"key_file": "missing/folder/x.keys"}, "folder that exists"),
        ({"key_file": "x.keys", "tenant": " "}, "tenant must be a name"),
        ({"key_file": "x.keys", "tenant": 7}, "tenant must be a name"),
        ({"key_file": "x.keys", "tenant": "a\0"}, "tenant must be a name of printable characters"),
        ({"key_file": "x.keys", "tenant": "a\ud800"}, "tenant must be a name of printable characters"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        GovernedMemory.open("postgresql://nobody@127.0.0.1:1/none", audit_key=KEY, **arguments)


@pytest.mark.parametrize("arguments", [{"key_file": "x.keys"}, {"tenant": "acme"}])
def test_arguments_of_a_database_are_refused_for_a_file(tmp_path, arguments):
    with pytest.raises(ConfigurationError, match="for a memory in a PostgreSQL database"):
        GovernedMemory.open(tmp_path / "memory.db", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_server_that_is_gone_is_named_without_the_password(tmp_path):
    address = f"postgresql://me:{quote('secret word')}@127.0.0.1:1/none"
    with pytest.raises(StorageError, match=r"none at 127\.0\.0\.1") as raised:
        GovernedMemory.open(address, key_file=tmp_path / "x.keys")
    assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_search_reads_memories_in_parts_and_goes_on_after_a_damaged_one(url, monkeypatch):
    monkeypatch.setattr(_postgres, "AT_ONCE", 3)
    with open_memory(url) as memory:
        for n in range(10):
            memory.add(f"Bread number {n} is baked.", user_id="alice", id=f"{n}", source="doc")
        found = memory.search("bread", user_id="alice", limit=None, max_tokens=10_000)
        assert {r.id for r in found.records} == {f"{n}" for n in range(10)}
    run(url, "UPDATE meve_memories SET sealed = sealed || '\\x00' WHERE row = (SELECT min(row) + 4 FROM meve_memories)")
    with open_memory(url) as memory:
        for _ in range(2):
            with pytest.raises(StoreCorruptError, match="damaged"):
                memory.search("bread", user_id="alice")
            assert memory.get("9", user_id="alice").text == "Bread number 9 is baked."
        memory.delete("9", user_id="alice")


def test_location_opens_a_memory_again_and_holds_no_password(url):
    secret = MemoryUrl(url.replace("meve@", "meve:hidden@") + "&password=hidden", url.keys)
    with open_memory(secret, tenant="acme") as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        location = memory.location
    assert "hidden" not in str(location)
    place = MemoryUrl(location["file"], url.keys)
    with open_memory(place, tenant=location["tenant"], key_file=location["key_file"]) as memory:
        assert ids(memory) == ["bread"]
