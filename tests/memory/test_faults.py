"""Processes that are killed, many that write at once, disks that are full, files that are broken."""

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from meve.errors import MeveError, StorageError, StoreCorruptError, StoreVersionError
from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder
from tests.memories import archive, as_version_3

CHILD = Path(__file__).with_name("writing_child.py")
KEY = b"a key of the tests, long enough"
KILLS = int(os.environ.get("MEVE_KILLS", "50"))


def opened(file, **parts):
    parts = {"embedder": WordEmbedder(), "tokens": WordCounter(), "audit_key": KEY, **parts}
    return GovernedMemory.open(file, **parts)


def child(file, name, count, threads=1):
    command = [sys.executable, str(CHILD), str(file), name, str(count), str(threads)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def acknowledged(output):
    """What a child said before it ended: ids that are there, with their users, and ids that went."""
    whole = [line.split(" ", 1) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    kept = {line.strip().rpartition("/")[2] for word, line in whole if word == "kept"}
    return kept, {line.strip() for word, line in whole if word == "gone"}


@pytest.mark.slow
@pytest.mark.timeout(900 + 8 * KILLS)
def test_killed_processes_lose_no_acknowledged_write(file):
    """Whatever they were doing: what was said to be there is there, what was said to be gone is gone."""
    rng = random.Random(7)
    kept, gone = set(), set()
    for n in range(KILLS):
        process = child(file, f"p{n}", 10_000, threads=2)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(rng.randrange(1, 12))]
        time.sleep(rng.random() * 0.02)
        process.kill()
        rest, _ = process.communicate()
        mine, lost = acknowledged("".join(lines) + rest)
        kept |= mine
        gone |= lost
    with opened(file) as memory:
        there = {r.id: r for user in range(3) for r in memory.list(user_id=f"user {user}")}
        assert kept <= there.keys()
        assert gone.isdisjoint(there)
        assert memory.audit.verify().ok
        added = {e.record_id for e in memory.audit.events(action="add")}
        deleted = {e.record_id for e in memory.audit.events(action="delete")}
        assert added - deleted == there.keys()
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_processes_and_threads_that_write_one_file_lose_nothing(file):
    """Eight processes of four threads each; no lock of the database reaches a caller."""
    processes = [child(file, f"p{n}", 40, threads=4) for n in range(8)]
    kept, gone = set(), set()
    for process in processes:
        output, errors = process.communicate(timeout=600)
        assert (process.returncode, errors) == (0, "")
        mine, lost = acknowledged(output)
        kept |= mine
        gone |= lost
    assert len(kept) + len(gone) == 8 * 40
    with opened(file) as memory:
        there = {r.id: r.text for user in range(3) for r in memory.list(user_id=f"user {user}")}
        assert there.keys() == kept
        for name, text in there.items():
            process, _, n = name.partition("-")
            changed = "changed " if int(n) % 5 == 4 else ""
            assert text == f"{changed}fact {n} of {process}"
        assert memory.audit.verify().ok


def test_processes_that_open_a_new_file_at_once_all_open_it(tmp_path):
    """Whoever comes second waits, though SQLite turns it away at once where a new file's journal is set."""
    code = """
import sys, time
from pathlib import Path
from meve.memory.stores.sqlite.store import SqliteStore
for n in range(50):
    at = float(sys.argv[2]) + 0.03 * n
    while time.time() < at:
        pass
    SqliteStore.open(Path(sys.argv[1], f"{n}.db")).close()
"""
    command = [sys.executable, "-c", code, str(tmp_path), str(time.time() + 3)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[1] for process in processes] == [""] * 4


def test_a_full_disk_is_said_and_loses_nothing(file):
    """A limit on how large files may grow stands for it: the same writes fail."""
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_faults import opened
from meve.errors import StorageError
memory = opened({str(file)!r})
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines[1:] == ["True", "True"], done.stderr
    assert "can't be written" in lines[0]


def test_a_read_only_file_is_said():
    """To whoever may not write it; root may write anything, so a child is somebody else."""
    with tempfile.TemporaryDirectory() as folder:
        read_only(Path(folder) / "memory.db")


def read_only(file):
    with opened(file) as memory:
        memory.add("One.", user_id="alice")
    file.chmod(0o444)
    file.parent.chmod(0o555)
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_faults import opened
from meve.errors import StorageError
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    opened({str(file)!r}).add("Two.", user_id="alice")
except StorageError as error:
    print(error)
"""
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    finally:
        file.parent.chmod(0o755)
    assert "permissions" in done.stdout, done.stderr


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 100, b"short"])
def test_what_is_no_memory_is_said_and_left_alone(file, content):
    file.write_bytes(content)
    with pytest.raises(StoreCorruptError, match=r"memory\.db"):
        opened(file)
    assert file.read_bytes() == content


def test_a_damaged_file_is_said(file):
    with opened(file) as memory:
        for n in range(200):
            memory.add(f"Fact number {n} " * 10, user_id="alice", id=f"f{n}")
    data = bytearray(file.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 512] = b"\xff" * 512
    file.write_bytes(data)
    with pytest.raises(StorageError, match=r"memory\.db"), opened(file) as memory:
        memory.list(user_id="alice")


def test_a_file_of_a_newer_version_is_left_alone(file):
    opened(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreVersionError, match=r"version 999.*upgrade meve"):
        opened(file)


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_changed_by_themselves_are_read_as_they_are_or_said_to_be_damaged(file, clock, seed):
    """By no error of another library's, wherever they lie."""
    with opened(file, clock=clock) as memory:
        for n in range(30):
            memory.add(f"bread number {n} is baked", user_id="alice", id=f"r{n}", tags=["food"], metadata={"n": n})
        for n in range(10):
            archive(memory, "s:alice", f"r{n}")
    rng, data = random.Random(seed), bytearray(file.read_bytes())
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
    with suppress(MeveError), opened(file, clock=clock) as memory:
        for call in calls:
            with suppress(MeveError):
                call(memory)


@pytest.mark.parametrize("version", [0, 1, 999])
def test_another_program_s_database_is_said_and_left_alone(file, version):
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE places (url TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreCorruptError, match="but no memory"):
        opened(file)
    assert file.read_bytes() == before


def test_a_file_of_the_first_version_is_brought_up_to_date_and_nothing_of_it_lost(file):
    """What was archived there tells only inside what it was made of; it goes with its origin all the same."""
    from meve.memory.records import SHARED
    from meve.memory.stores.sqlite._rows import pack
    from meve.memory.stores.sqlite._schema import MIGRATIONS
    from meve.testing.memory_store_contract import stored

    with sqlite3.connect(file) as connection:
        connection.executescript(MIGRATIONS[0])
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO users (no, key) VALUES (1, 's:alice')")
        for name, origins in (("summary", ("origin",)), ("other", ())):
            body = as_version_3(pack(stored(name, derived_from=origins)))
            connection.execute("INSERT INTO archive VALUES (1, ?, NULL, 0, ?)", (name, body))
    connection.close()
    with opened(file) as memory:
        assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["other", "summary"]
        assert memory.delete("origin", user_id="alice").erased == ("summary",)
        assert [r.id for r in memory.list(user_id="alice", include_archived=True)] == ["other"]
        assert memory._runtime.store.version(SHARED) == 0
    opened(file).close()


@pytest.mark.parametrize("wrong", ["nowhere/memory.db", "."])
def test_a_place_that_can_not_be_is_named(tmp_path, wrong):
    with pytest.raises(StorageError, match="folder"):
        opened(tmp_path / wrong)


def test_a_memory_that_is_closed_says_so(file):
    memory = opened(file)
    memory.close()
    memory.close()
    with pytest.raises(StorageError, match="closed"):
        memory.add("One.", user_id="alice")
    with pytest.raises(StorageError, match="closed"):
        memory.list(user_id="alice")


def test_another_embedder_than_the_file_s_is_refused(file):
    from meve.errors import IndexMismatchError

    opened(file).close()
    with pytest.raises(IndexMismatchError, match="words-by-initial"):
        GovernedMemory.open(file, audit_key=KEY)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_writes_beside_its_parent(file):
    """As under a server that loads once and forks: the memory is open already, and has written and read."""
    with opened(file) as memory:
        memory.add("bread is baked", user_id="alice", id="before")
        memory.search("bread", user_id="alice")
        child = os.fork()
        name = "parent" if child else "child"
        done = 1
        try:
            if not child:
                assert (
                    memory._runtime.store.backend._connections._writer is None
                )  # the parent's is not to be used, nor closed
            for n in range(5):
                memory.add(f"bread number {n} of the {name}", user_id="alice", id=f"{name} {n}")
                assert memory.search("bread", user_id="alice").records
            done = 0
        finally:
            if not child:
                os._exit(done)
        assert os.waitpid(child, 0)[1] == 0
        assert len(memory.list(user_id="alice")) == 11
        assert memory.audit.verify().ok
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
