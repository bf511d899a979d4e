"""Keys of a memory in PostgreSQL in a table of another server."""

import os
import re
import threading
import time

import pytest

from meve.errors import ConfigurationError, KeyFileError, StorageError
from meve.memory import copy_memory
from meve.memory.copying import MemoryPlace
from meve.memory.stores._sql.key_file import _FIRST, _SLOT, ENTRIES, TIME, Slots
from tests.memories import KEY, open_memory
from tests.postgres import KeysUrl, MemoryUrl, own_schema, own_server

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")
MASTER = b"a master key, long enough for it"
CLEAN = ("VACUUM FULL meve_keys", "SELECT pg_switch_wal()", "CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT")
"""What docs/memory-databases.md tells to run on the server of the keys."""


@pytest.fixture
def url(postgres_url, keys_url):
    return MemoryUrl(postgres_url, keys_url)


@pytest.fixture
def key_server(tmp_path):
    """A server for keys that a test may stop."""
    with own_server(tmp_path) as server:
        yield server


def slots_of(memory):
    """Return all secrets that stand in the slots of a memory."""
    with memory._runtime.store.backend._keys.place.open("rb") as keys:
        count = (keys.size() - _FIRST) // _SLOT
        keys.seek(_FIRST)
        data = keys.read(count * _SLOT)
    return [data[at : at + _SLOT] for at in range(0, len(data), _SLOT)]


def secrets_in_use(memory):
    """Return the secrets of the records of a memory and of its users."""
    slots = slots_of(memory)
    with memory._runtime.store.backend._database.reading() as connection:
        used = [
            number
            for table in ("memories", "users")
            for (number,) in connection.execute(
                f"SELECT slot FROM {table} WHERE tenant = :tenant AND slot IS NOT NULL"
            ).fetchall()
        ]
    return {slots[number] for number in used}


def files_with(folder, secrets):
    """Return the files below a folder that hold one of these secrets."""
    return {
        path.relative_to(folder).parts[0]
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    }


def test_processes_share_the_keys_and_an_erasure_by_one_is_seen_by_the_other(url):
    with open_memory(url) as one, open_memory(url) as other:
        one.add("I like tea.", user_id="alice", id="tea")
        other.add("I like rum.", user_id="alice", id="rum")
        assert {record.id for record in one.list(user_id="alice")} == {"tea", "rum"}
        before = secrets_in_use(one)
        other.delete("tea", user_id="alice")
        (tea,) = before - secrets_in_use(one)
        assert tea not in slots_of(one)
        assert [record.id for record in one.list(user_id="alice")] == ["rum"]
        assert one.audit.verify().ok


def test_keys_on_the_server_of_the_memory_are_refused(postgres_server, postgres_url):
    with own_schema(postgres_server, f"keys_{os.urandom(8).hex()}") as beside:
        with pytest.raises(ConfigurationError, match="on another server than the memory's, got one on the same server"):
            open_memory(MemoryUrl(postgres_url, KeysUrl(beside)))
        with psycopg.connect(beside) as connection:
            assert connection.execute("SELECT count(*) FROM meve_keys").fetchall() == [(0,)]


def test_server_of_keys_that_is_gone_is_an_error_and_nothing_is_lost(postgres_url, key_server):
    url = MemoryUrl(postgres_url, KeysUrl(key_server.url))
    with open_memory(url) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        key_server.crash()
        for call in (
            lambda: memory.add("I like rum.", user_id="alice", id="rum"),
            lambda: memory.delete("tea", user_id="alice"),
            lambda: memory.list(user_id="alice"),
        ):
            with pytest.raises(KeyFileError, match=r"the key file in the PostgreSQL database .* can't be used"):
                call()
        with pytest.raises(KeyFileError, match="can't be used"):
            open_memory(url)
        key_server.start()
        assert [record.id for record in memory.list(user_id="alice")] == ["tea"]
        memory.add("I like rum.", user_id="alice", id="rum")
    with open_memory(url) as memory:
        assert {record.id for record in memory.list(user_id="alice")} == {"tea", "rum"}
        assert memory.audit.verify().ok
        assert not memory.find_damage()


@pytest.mark.parametrize("by", ["opening", "change"])
def test_server_of_keys_that_stops_between_erasure_and_destruction_destroys_them_later(
    postgres_url, key_server, monkeypatch, by
):
    url, renew = MemoryUrl(postgres_url, KeysUrl(key_server.url)), Slots.renew
    with open_memory(url) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        memory.add("I like rum.", user_id="alice", id="rum")
        before = secrets_in_use(memory)

        def stop_and_renew(*given):
            key_server.crash()
            renew(*given)

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "renew", stop_and_renew)
            with pytest.raises(
                StorageError, match="is made, but the keys of what it erased still stand in the key file"
            ):
                memory.delete("tea", user_id="alice")
        key_server.start()
        assert before <= set(slots_of(memory))
        if by == "change":
            memory.add("I like gin.", user_id="alice", id="gin")
            assert len(before - set(slots_of(memory))) == 1
    with open_memory(url) as memory:
        assert len(before - set(slots_of(memory))) == 1
        assert "tea" not in {record.id for record in memory.list(user_id="alice")}


def test_cleaned_server_holds_no_destroyed_key_in_any_file(postgres_url, key_server):
    """As the documentation says, and as it says too, they stand there until then."""
    with psycopg.connect(key_server.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_recycle = off")
        connection.execute("SELECT pg_reload_conf()")
    data = key_server.folder / "data"
    with open_memory(MemoryUrl(postgres_url, KeysUrl(key_server.url))) as memory:
        for n in range(40):
            memory.add(f"Fact number {n}.", user_id=f"user {n % 4}", id=str(n), source="doc")
        secrets = secrets_in_use(memory)
        for n in range(4):
            memory.forget_user(user_id=f"user {n}")
        assert not secrets & set(slots_of(memory))
        with psycopg.connect(key_server.url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            assert files_with(data, secrets) == {"base", "pg_wal"}
            for statement in CLEAN:
                connection.execute(statement)
        assert files_with(data, secrets) == set()
        memory.add("I like tea.", user_id="alice")
    assert len(secrets) == 44


def test_numbers_that_two_processes_note_in_one_row_are_both_kept(url):
    with open_memory(url) as one, open_memory(url) as other:
        keys = [each._runtime.store.backend._keys for each in (one, other)]

        def note(which, place):
            for n in range(1, 101):
                keys[which].note(place, n)
                assert keys[which].noted(place) == n

        threads = [threading.Thread(target=note, args=given) for given in ((0, TIME), (1, ENTRIES))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [keys[0].noted(place) for place in (TIME, ENTRIES)] == [100, 100]


def test_lost_row_of_the_table_is_an_error(url):
    with open_memory(url) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        with psycopg.connect(url.keys) as connection:
            connection.execute("DELETE FROM meve_keys WHERE block = 1")
        with pytest.raises(KeyFileError, match="lacks rows of the table meve_keys: restore them"):
            memory.add("I like rum.", user_id="alice")


def test_keys_of_another_memory_are_told_from_those_that_are_missing(url, keys_server):
    open_memory(url).close()
    with (
        own_schema(keys_server, f"keys_{os.urandom(8).hex()}") as empty,
        pytest.raises(KeyFileError, match="is missing, and nothing in the memory can be read without its keys"),
    ):
        open_memory(MemoryUrl(url, KeysUrl(empty)))
    open_memory(url).close()


def test_master_key_locks_the_keys_in_a_table(url):
    with open_memory(url, master_key=MASTER) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        root = memory._runtime.store.backend._keys._root
    with psycopg.connect(url.keys) as connection:
        data = b"".join(data for (data,) in connection.execute("SELECT data FROM meve_keys ORDER BY block").fetchall())
    assert root not in data
    with pytest.raises(KeyFileError, match="is locked with a master key, and none was given"):
        open_memory(url)


def test_copy_moves_keys_from_a_file_to_a_table(url, tmp_path):
    with open_memory(tmp_path / "a.db") as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    target = MemoryPlace(file=str(url), key_file=str(url.keys))
    copy_memory(MemoryPlace(file=tmp_path / "a.db"), target, audit_key=KEY)
    with open_memory(url) as memory:
        assert [record.id for record in memory.list(user_id="alice")] == ["tea"]
        assert memory.location["key_file"] == str(url.keys)


def test_server_of_the_keys_is_asked_about_as_often_as_documented(url, tmp_path):
    """What is sent in a pipeline counts once or several times, as the server is fast."""
    with open_memory(url) as memory:
        database = memory._runtime.store.backend._keys.place._database

        def count(call):
            with open(tmp_path / "trace", "wb") as file:
                with database.lending() as rows:  # the pool lends the same one again
                    rows._connection.pgconn.trace(file.fileno())
                call()
                with database.lending() as rows:
                    rows._connection.pgconn.untrace()
            return "".join(re.findall(r"\t([FB])\t", (tmp_path / "trace").read_text())).count("FB")

        memory.add("I like tea.", user_id="alice", id="tea")
        memory.search("What do I like?", user_id="alice")
        assert count(lambda: memory.search("What do I like?", user_id="alice")) <= 9
        assert count(lambda: memory.add("I like rum.", user_id="alice", id="rum")) <= 24
        assert count(lambda: memory.delete("rum", user_id="alice")) <= 33


def test_connections_to_the_keys_are_closed_with_the_memory(url):
    url.keys = KeysUrl(f"{url.keys}&application_name={url.keys[-8:]}")

    def count():
        with psycopg.connect(str(url.keys).replace("application_name", "fallback_application_name")) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
            return connection.execute(query, (url.keys[-8:],)).fetchone()[0]

    with open_memory(url) as memory:
        memory.add("I like tea.", user_id="alice")
        assert count()
    deadline = time.monotonic() + 10
    while count():
        assert time.monotonic() < deadline
        time.sleep(0.05)
