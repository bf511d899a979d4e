"""Killed processes, concurrent writers and maintainers, slow readers, full disks and damaged files."""

import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from meve._postgres import is_postgres_url
from meve.errors import IndexMismatchError, MeveError, StorageError, StoreCorruptError, StoreVersionError
from meve.memory import GovernedMemory, Policy
from meve.memory.records import SHARED
from meve.memory.stores._sql.key_file import Slots
from meve.memory.stores._sql.rows import pack, to_values
from meve.memory.stores.sqlite._schema import MIGRATIONS
from meve.memory.stores.sqlite.store import SqliteStore
from meve.testing._memory_records import stored
from tests.memories import KEY, archive, as_version_3, open_memory, run_sql
from tests.memory import writing_child
from tests.warm_process import run_code, warm_process

KILLS = int(os.environ.get("MEVE_KILLS", "50"))


def parse_output(output):
    """Return the ids that a child's output acknowledges as stored and as deleted."""
    lines = [line.split(" ", 1) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    kept = {line.strip().rpartition("/")[2] for verb, line in lines if verb == "kept"}
    return kept, {line.strip() for verb, line in lines if verb == "gone"}


@pytest.mark.slow
@pytest.mark.timeout(900 + 8 * KILLS)
def test_killed_processes_lose_no_acknowledged_write(file):
    rng = random.Random(7)
    kept, gone = set(), set()
    for n in range(KILLS):
        with warm_process(writing_child.write, file, f"p{n}", 10_000, 2) as (process, output):
            lines = [output.readline() for _ in range(rng.randrange(1, 12))]
            time.sleep(rng.random() * 0.02)
            process.kill()
            new_kept, new_gone = parse_output("".join(lines) + output.read())
        kept |= new_kept
        gone |= new_gone
    with open_memory(file) as memory:
        records = {r.id: r for user in range(3) for r in memory.list(user_id=f"user {user}")}
        assert kept <= records.keys()
        assert gone.isdisjoint(records)
        assert memory.audit.verify().ok
        added = {e.record_id for e in memory.audit.events(action="add")}
        deleted = {e.record_id for e in memory.audit.events(action="delete")}
        assert added - deleted == records.keys()
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_concurrent_processes_and_threads_lose_no_write(file):
    kept, gone = set(), set()
    with ExitStack() as stack:
        writers = [stack.enter_context(warm_process(writing_child.write, file, f"p{n}", 40, 4)) for n in range(8)]
        for process, output in writers:
            lines = output.read()
            assert all(line.startswith(("kept ", "gone ")) for line in lines.splitlines()), lines
            new_kept, new_gone = parse_output(lines)
            process.join()
            assert process.exitcode == 0
            kept |= new_kept
            gone |= new_gone
    assert len(kept) + len(gone) == 8 * 40
    with open_memory(file) as memory:
        texts = {r.id: r.text for user in range(3) for r in memory.list(user_id=f"user {user}")}
        assert texts.keys() == kept
        for name, text in texts.items():
            process, _, n = name.partition("-")
            changed = "changed " if int(n) % 5 == 4 else ""
            assert text == f"{changed}fact {n} of {process}"
        assert memory.audit.verify().ok


def test_opening_of_a_new_file_waits_while_another_process_makes_it(tmp_path, monkeypatch):
    """SQLite itself doesn't wait for a lock while the journal mode of a new file is set."""
    waited = threading.Event()
    monkeypatch.setattr("meve._sqlite.time.sleep", lambda _: waited.set())
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other, ThreadPoolExecutor(1) as threads:
        other.execute("BEGIN IMMEDIATE")
        opening = threads.submit(SqliteStore.open, tmp_path / "new.db")
        assert waited.wait(20)
        other.execute("ROLLBACK")
        opening.result(20).close()


def test_processes_open_a_new_file_at_the_same_time(tmp_path):
    start = time.time() + 0.5
    with ExitStack() as stack:
        openers = [stack.enter_context(warm_process(writing_child.open_new, tmp_path, 50, start)) for _ in range(4)]
        assert [output.read() for _, output in openers] == ["opened\n"] * 4


def test_two_maintainers_at_once_do_the_work_of_one(file, clock):
    policy = Policy.from_dict({"merging": {"nominate": 0.0}, "limits": {"per_user": 12}})
    with ExitStack() as stack:
        memories = [stack.enter_context(open_memory(file, clock=clock, policy=policy)) for _ in range(2)]
        for n in range(40):
            text = f"Tree {n % 10} is tall." if n < 20 else f"Bird {n} sings."
            memories[0].add(text, user_id=f"user {n % 2}", id=f"{n}", source="doc")
        with ThreadPoolExecutor(2) as threads:
            reports = list(threads.map(lambda memory: memory.maintain(), memories))
        for change in ("merged", "archived"):
            changed = [each for report in reports for ids in getattr(report, change).values() for each in ids]
            assert len(changed) == len(set(changed)) > 0
        assert memories[0].audit.verify().ok
        after = [[r.id for r in memory.list(user_id="user 0")] for memory in memories]
        assert after[0] == after[1]
        assert sum(memories[1].maintain().counts().values()) == 0


def test_slow_reader_keeps_nobody_waiting_and_sees_one_state(file):
    with open_memory(file) as memory, open_memory(file) as other:
        memory.add("Bread is baked.", user_id="alice", id="bread", source="doc")
        with memory._runtime.store.backend.reading() as snapshot:
            assert snapshot.version("s:alice") == 1
            other.add("Rye is baked.", user_id="alice", id="rye", source="doc")
            memory.delete("bread", user_id="alice")
            for each in (memory, other):
                assert [r.id for r in each.search("What is baked?", user_id="alice").records] == ["rye"]
            assert snapshot.version("s:alice") == 1
        assert memory.audit.verify().ok


def test_writer_looks_for_its_turn_as_often_however_long_it_has_waited(file, monkeypatch):
    """Else all that come later overtake it, until it gives up."""
    if is_postgres_url(file):
        pytest.skip("about an SQLite file")
    waits, tried = [], threading.Event()

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 100:
            tried.set()

    monkeypatch.setattr("meve._sqlite.time.sleep", sleep)
    with open_memory(file) as memory, open_memory(file) as other, ThreadPoolExecutor(1) as threads:
        with memory._runtime.store.backend.writing():
            adding = threads.submit(other.add, "Bread is baked.", user_id="alice", id="bread", source="doc")
            assert tried.wait(20)
            assert not adding.done()
        assert adding.result(20).id == "bread"
        assert max(waits) <= 0.005


def test_search_for_damage_keeps_no_writer_waiting_and_takes_no_change_for_damage(file, monkeypatch):
    """A service checks a large memory while it is used."""
    with open_memory(file) as memory, open_memory(file) as other, ThreadPoolExecutor(1) as threads:
        for n in range(3):
            memory.add(f"Bread number {n} is baked.", user_id="alice", id=f"{n}", source="doc")
        memory.add("Rye is baked.", user_id="bob", id="rye", source="doc")
        fits, changes = Slots.fits, []

        def change():
            other.update("1", user_id="alice", text="Bread is eaten.")
            other.forget_user(user_id="bob")

        def fits_after_a_change(*given):
            if not changes:
                changes.append(threads.submit(change))
                changes[0].result(20)
            return fits(*given)

        monkeypatch.setattr(Slots, "fits", fits_after_a_change)
        assert memory.find_damage() == []
        assert changes[0].done()


def test_full_disk_raises_and_loses_nothing(file):
    """A limit on the file size makes the same writes fail."""
    if is_postgres_url(file):
        pytest.skip("about an SQLite file")
    code = f"""
import resource
from meve.errors import StorageError
from tests.memories import open_memory
memory = open_memory({str(file)!r})
memory.add("kept", user_id="alice", id="kept")
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
n = 0
try:
    while True:
        memory.add("x" * 20_000, user_id="alice", id=f"n{{n}}")
        n += 1
except StorageError as error:
    print(n, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
memory.add("after", user_id="alice", id="after")
print(sorted(r.id for r in memory.list(user_id="alice")) == sorted(["kept", "after", *(f"n{{i}}" for i in range(n))]))
print(memory.audit.verify().ok)
"""
    _, printed = run_code(code)
    lines = printed.splitlines()
    assert lines[1:] == ["True", "True"], printed
    assert "can't be written" in lines[0]


def test_read_only_file_raises():
    """A child process drops root's rights, which would allow any write."""
    with tempfile.TemporaryDirectory() as folder:
        check_read_only_file(Path(folder) / "memory.db")


def check_read_only_file(file):
    with open_memory(file) as memory:
        memory.add("One.", user_id="alice")
    file.chmod(0o444)
    file.parent.chmod(0o555)
    code = f"""
import os
from meve.errors import StorageError
from tests.memories import open_memory
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    open_memory({str(file)!r}).add("Two.", user_id="alice")
except StorageError as error:
    print(error)
"""
    try:
        _, printed = run_code(code)
    finally:
        file.parent.chmod(0o755)
    assert "permissions" in printed


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 100, b"short"])
def test_file_that_is_no_database_raises_and_stays_unchanged(file, content):
    file.write_bytes(content)
    with pytest.raises(StoreCorruptError, match=r"memory\.db"):
        open_memory(file)
    assert file.read_bytes() == content


def test_damaged_file_raises(file):
    with open_memory(file) as memory:
        for n in range(200):
            memory.add(f"Fact number {n} " * 10, user_id="alice", id=f"f{n}")
    data = bytearray(file.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 512] = b"\xff" * 512
    file.write_bytes(data)
    with pytest.raises(StorageError, match=r"memory\.db"), open_memory(file) as memory:
        memory.list(user_id="alice")


def test_file_of_a_newer_version_raises(file):
    open_memory(file).close()
    run_sql(file, "PRAGMA user_version = 999")
    with pytest.raises(StoreVersionError, match=r"version 999.*upgrade meve"):
        open_memory(file)


@pytest.fixture(scope="module")
def whole_memory(tmp_path_factory):
    """Return the file of a memory. Tests must not change it."""
    file = tmp_path_factory.mktemp("whole") / "memory.db"
    with open_memory(file) as memory:
        for n in range(30):
            memory.add(f"bread number {n} is baked", user_id="alice", id=f"r{n}", tags=["food"], metadata={"n": n})
        for n in range(10):
            archive(memory, "s:alice", f"r{n}")
    return file


@pytest.mark.filterwarnings("ignore::meve.errors.StaleWarning")  # of a damaged embedder's name
@pytest.mark.parametrize("seed", range(40))
def test_random_damage_raises_only_our_errors(whole_memory, tmp_path, seed):
    file = tmp_path / "memory.db"
    shutil.copy(f"{whole_memory}.keys", tmp_path)
    rng, data = random.Random(seed), bytearray(whole_memory.read_bytes())
    for _ in range(20):
        data[rng.randrange(100, len(data))] = rng.randrange(256)
    file.write_bytes(data)
    calls = (
        lambda m: m.list(user_id="alice", include_archived=True),
        lambda m: m.search("bread", user_id="alice"),
        lambda m: m.export(user_id="alice"),
        lambda m: m.audit.verify(),
        lambda m: m.maintain(),
        lambda m: m.delete("r3", user_id="alice"),
    )
    with suppress(MeveError), open_memory(file) as memory:
        for call in calls:
            with suppress(MeveError):
                call(memory)


@pytest.mark.parametrize("version", [0, 1, 999])
def test_database_of_another_program_raises_and_stays_unchanged(file, version):
    run_sql(file, "CREATE TABLE places (url TEXT)", f"PRAGMA user_version = {version}")
    before = file.read_bytes()
    with pytest.raises(StoreCorruptError, match="but no memory"):
        open_memory(file)
    assert file.read_bytes() == before


def test_file_of_version_1_is_migrated_without_loss(file):
    """Archived records of version 1 list their origins only in the packed body."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(MIGRATIONS[0])
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO users (no, key) VALUES (1, 's:alice')")
        for name, origins in (("summary", ("origin",)), ("other", ())):
            body = as_version_3(pack(to_values(stored(name, derived_from=origins))))
            connection.execute("INSERT INTO archive VALUES (1, ?, NULL, 0, ?)", (name, body))
    with open_memory(file) as memory:
        assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["other", "summary"]
        assert memory.delete("origin", user_id="alice").erased == ("summary",)
        assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["other"]
        assert memory._runtime.store.version(SHARED) == 0
        memory.messages.add("s", [{"text": "Hello."}], user_id="alice")
        assert memory.messages.count("s", user_id="alice") == 1
    open_memory(file).close()
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories_message'").fetchone()


@pytest.mark.parametrize("wrong", ["nowhere/memory.db", "."])
def test_path_without_folder_raises(tmp_path, wrong):
    with pytest.raises(StorageError, match="folder"):
        open_memory(tmp_path / wrong)


def test_closed_memory_raises(file):
    memory = open_memory(file)
    memory.close()
    memory.close()
    with pytest.raises(StorageError, match="closed"):
        memory.add("One.", user_id="alice")
    with pytest.raises(StorageError, match="closed"):
        memory.list(user_id="alice")


def test_another_embedder_than_the_files_raises(file):
    open_memory(file).close()
    with pytest.raises(IndexMismatchError, match="words-by-initial"):
        GovernedMemory.open(file, audit_key=KEY)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_process_writes_beside_its_parent(file):
    """The memory was written and read before the fork, as in a preloading server."""
    with open_memory(file) as memory:
        memory.add("bread is baked", user_id="alice", id="before")
        memory.search("bread", user_id="alice")
        pid = os.fork()
        name = "parent" if pid else "child"
        status = 1
        try:
            if not pid:
                # the parent's connection must neither be used nor closed
                backend = memory._runtime.store.backend
                lent = backend._database._database._pool if is_postgres_url(file) else backend._connections._writer
                assert lent is None
            for n in range(5):
                memory.add(f"bread number {n} of the {name}", user_id="alice", id=f"{name} {n}")
                assert memory.search("bread", user_id="alice").records
            status = 0
        finally:
            if not pid:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(memory.list(user_id="alice")) == 11
        assert memory.audit.verify().ok
    if not is_postgres_url(file):
        with closing(sqlite3.connect(file)) as connection, connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
