"""A memory in a PostgreSQL database: crashes, full disks, slow queries, lack of connections, locks, cancelled calls."""

import asyncio
import os
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from secrets import token_hex
from urllib.parse import quote

import pytest

from meve.errors import ConfigurationError, DuplicateIdError, StorageError, StoreBusyError, UnknownIdError
from tests.memories import open_memory
from tests.postgres import MemoryUrl, own_server

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")


@pytest.fixture
def url(postgres_url, tmp_path):
    return MemoryUrl(postgres_url, tmp_path / "memory.keys")


def until_answered(call, *arguments, **options):
    """Repeat a call until the server answers it; an earlier try may have been carried out without an answer."""
    while True:
        try:
            return call(*arguments, **options)
        except (DuplicateIdError, UnknownIdError):
            return None
        except StorageError:
            time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_server_that_crashes_under_load_loses_nothing_acknowledged(tmp_path):
    stop, kept, gone = threading.Event(), set(), set()

    def write(memory, name):
        user = f"user {name}"
        for n in range(10_000):
            if stop.is_set():
                return
            record_id = f"{name}-{n}"
            until_answered(memory.add, f"Fact number {n} of {name}.", user_id=user, id=record_id, source="doc")
            kept.add((user, record_id))
            if n % 3 == 0:
                kept.discard((user, record_id))
                until_answered(memory.delete, record_id, user_id=user)
                gone.add((user, record_id))
            if n % 4 == 0:
                until_answered(memory.search, f"fact number {n}", user_id=user)

    with own_server(tmp_path) as server:
        url = MemoryUrl(server.url, tmp_path / "memory.keys")
        with open_memory(url) as memory, open_memory(url) as other, ThreadPoolExecutor(4) as threads:
            writing = [threads.submit(write, each, n) for n, each in enumerate([memory, memory, other, other])]
            try:
                for goal in (20, 40, 60):
                    while len(kept) + len(gone) < goal and not any(each.done() for each in writing):
                        time.sleep(0.01)
                    server.crash()
                    server.start()
            finally:
                stop.set()
            for each in writing:
                each.result()
        with open_memory(url) as memory:
            found = {(f"user {n}", r.id) for n in range(4) for r in memory.list(user_id=f"user {n}")}
            assert len(gone) >= 12
            assert found == kept
            assert memory.audit.verify().ok
            assert memory.find_damage() == []


def test_connections_that_run_out_are_an_error_that_says_so(url):
    with open_memory(url) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        database = memory._runtime.store.backend._database._database
        database._open_pool().timeout = 0.2
        with ExitStack() as lent:
            for _ in range(16):
                lent.enter_context(database.reading())
            with pytest.raises(StoreBusyError, match=r"gave no connection in .* s, at most 16 at once: try again"):
                memory.get("bread", user_id="alice")
            with pytest.raises(StoreBusyError, match=r"gave no connection in .* s, at most 16 at once: try again"):
                memory.delete("bread", user_id="alice")
        assert memory.get("bread", user_id="alice").text == "Bread is baked."


def test_number_of_connections_stands_in_the_url(url):
    few = MemoryUrl(f"{url}&connections=2", url.keys)
    with open_memory(few) as memory:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        database = memory._runtime.store.backend._database._database
        database._open_pool().timeout = 0.2
        with database.reading():
            assert memory.get("bread", user_id="alice").text == "Bread is baked."
            with database.reading(), pytest.raises(StoreBusyError, match="at most 2 at once: try again, or set conn"):
                memory.get("bread", user_id="alice")
        assert "connections=2" in memory.location["file"]


@pytest.mark.parametrize(("setting", "message"), [("connections=1", "from 2 to 10,000"), ("prepared=0", "on or off")])
def test_invalid_setting_in_the_url_is_named(url, setting, message):
    with pytest.raises(ConfigurationError, match=message):
        open_memory(MemoryUrl(f"{url}&{setting}", url.keys))


def settings_of(connection):
    names = ("lock_timeout", "synchronous_commit", "meve.tenant")
    return [connection.execute("SELECT current_setting(%s, TRUE)", (name,)).fetchone()[0] for name in names]


def forget_session(connection):
    """Do what the change to another connection does: nothing of the session is left, and psycopg isn't told."""
    connection.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; EXECUTE 'RESET ALL'; END $$")


def test_memory_leaves_nothing_in_a_session_and_needs_nothing_of_it(url):
    """So transactions may run on any connection, as behind a pooler."""
    pooled = MemoryUrl(f"{url}&prepared=off", url.keys)
    with open_memory(pooled) as memory:
        pool = memory._runtime.store.backend._database._database._open_pool()
        pool._reset = forget_session
        for n in range(10):
            memory.add(f"Bread {n}.", user_id="alice", id=f"{n}", source="doc")
            assert memory.get(f"{n}", user_id="alice").text == f"Bread {n}."
        assert memory.search("bread", user_id="alice").records
        memory.delete("0", user_id="alice")
        with psycopg.connect(url) as fresh, pool.connection() as used:
            assert settings_of(used)[:2] == settings_of(fresh)[:2]
            assert not settings_of(used)[2]
            assert used.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert memory.audit.verify().ok
    with open_memory(url) as memory:
        memory._runtime.store.backend._database._database._open_pool()._reset = forget_session
        with pytest.raises(StorageError, match=r"prepared statement .* does not exist"):
            list(map(partial(memory.get, user_id="alice"), ["1"] * 20))


def test_transaction_waits_for_locks_no_longer_than_allowed(url):
    with open_memory(url) as memory:
        database = memory._runtime.store.backend._database
        database._database._open_pool()._reset = forget_session
        for opening in (database.reading, database.writing) * 2:
            with opening() as connection:
                assert connection.execute("SHOW lock_timeout -- :tenant").fetchall() == [("1min",)]


def test_hung_server_process_keeps_only_its_own_call_waiting(url):
    """It is stopped, as by a disk that doesn't answer."""
    with open_memory(url) as memory, ThreadPoolExecutor(1) as threads:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        database = memory._runtime.store.backend._database._database
        ((pid,),) = database.query("SELECT pg_backend_pid()")
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            pytest.skip("the server's processes aren't ours")
        try:
            hung = threads.submit(memory.get, "bread", user_id="alice")
            time.sleep(0.3)
            assert not hung.done()
            assert memory.get("bread", user_id="alice").text == "Bread is baked."
            memory.add("Rye is baked.", user_id="alice", id="rye", source="doc")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert hung.result(timeout=30).text == "Bread is baked."


def test_victim_of_a_deadlock_changes_nothing(url):
    """Another program locks a table, and then waits for the writer, as an administrator's script may."""
    quick = MemoryUrl(f"{url}{quote(' -cdeadlock_timeout=10ms')}", url.keys)
    with open_memory(quick) as memory, psycopg.connect(url) as other, ThreadPoolExecutor(1) as threads:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")

        def erase():
            with memory._runtime.store.writing() as transaction:
                other.execute("LOCK TABLE meve_memories IN SHARE MODE")
                waiting = threads.submit(other.execute, "SELECT 1 FROM meve_tenants FOR UPDATE")
                while not is_waiting(url, other.info.backend_pid):
                    assert not waiting.done()
                transaction.erase("s:alice", transaction.find("s:alice", "bread").record)

        with pytest.raises(StoreBusyError, match="try again"):
            erase()
        other.rollback()
        assert memory.get("bread", user_id="alice").text == "Bread is baked."
        assert memory.delete("bread", user_id="alice").erased == ("bread",)
        assert memory.audit.verify().ok


def is_waiting(url, pid):
    with psycopg.connect(url, autocommit=True) as watcher:
        return watcher.execute("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted", (pid,)).fetchone() is not None


def test_full_disk_of_the_server_raises_and_loses_nothing(tmp_path):
    """A limit on the size of the server's files makes the same writes fail."""
    with own_server(tmp_path) as server:
        url = MemoryUrl(server.url, tmp_path / "memory.keys")
        with open_memory(url) as memory:
            memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        server.crash()
        server.start(largest_file=17_000_000)  # more than a file of the server's log has
        with open_memory(url) as memory:
            kept = []

            def write(record_id):
                memory.messages.add("s", [{"text": token_hex(200_000)}], user_id="alice", ids=[record_id])
                kept.append(record_id)

            with pytest.raises(StorageError, match="can't be used: could not extend file"):
                list(map(write, map(str, range(1_000))))
            assert [each.id for each in memory.messages.page("s", user_id="alice")] == kept
            assert memory.delete("bread", user_id="alice").erased == ("bread",)
            server.crash()
            server.start()
            write("after")
            assert [each.id for each in memory.messages.page("s", user_id="alice")] == kept
            assert memory.audit.verify().ok
            assert memory.find_damage() == []


def test_slow_query_that_the_server_ends_changes_nothing(url):
    """An administrator's limit ends a statement that waits for another program's lock; others go on."""
    limited = MemoryUrl(f"{url}{quote(' -cstatement_timeout=200ms')}", url.keys)
    with open_memory(limited) as memory, psycopg.connect(url) as other:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        other.execute("LOCK TABLE meve_memories IN ACCESS EXCLUSIVE MODE")
        for call in (memory.get, memory.delete):
            with pytest.raises(StorageError, match="statement timeout"):
                call("bread", user_id="alice")
        other.rollback()
        assert memory.get("bread", user_id="alice").text == "Bread is baked."
        assert memory.audit.verify().ok


async def test_cancelled_calls_leave_no_transaction_open(url):
    """Calls are cancelled at once, while they run, and after they have ended."""
    named = MemoryUrl(f"{url}&application_name={uuid.uuid4().hex}", url.keys)
    async with open_memory(named) as memory:
        await memory.aadd("Bread is baked.", user_id="alice", id="bread", source="doc")
        started = 0
        for n in range(100):
            call = (
                memory.asearch(f"bread {n}", user_id="alice")
                if n % 2
                else memory.aadd(f"Bread number {n} is baked.", user_id="alice", id=f"{n}", source="doc")
            )
            task = asyncio.create_task(call)
            await asyncio.sleep(n * 0.0002)
            started += not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await memory.run_async(lambda: None)
        await memory.alist(user_id="alice")
        assert started > 20
        assert await asyncio.to_thread(wait_until_idle, named) == {"idle"}
        assert {r.id for r in memory.list(user_id="alice")} == {"bread", *(f"{n}" for n in range(0, 100, 2))}
        assert memory.audit.verify().ok


def wait_until_idle(url):
    """Return the states of the connections with a URL's application name, when none is active any more."""
    name = url.rpartition("=")[2]
    of_name = "SELECT state FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
    while True:
        with psycopg.connect(url, autocommit=True) as watcher:
            states = watcher.execute(of_name, (name,)).fetchall()
        if ("active",) not in states:
            return {state for (state,) in states}


async def test_reads_wait_for_the_server_at_once(url):
    """Four reads meet at a barrier, while a write waits for none of them."""
    barrier = threading.Barrier(4)
    async with open_memory(url) as memory:
        reading = [asyncio.create_task(memory._runtime.runner.read(barrier.wait, 30)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.wait_for(memory.aadd("Bread is baked.", user_id="alice", source="doc"), 30)
        reading.append(asyncio.create_task(memory._runtime.runner.read(barrier.wait, 30)))
        assert sorted(await asyncio.gather(*reading)) == [0, 1, 2, 3]
