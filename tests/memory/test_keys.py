"""Erasure as the destruction of a key: the key file beside a memory's database."""

import shutil
import stat
import threading
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from meve.errors import ConfigurationError, KeyFileError, StorageError
from meve.memory import GovernedMemory
from meve.memory.stores._sql import key_file as keys_module
from meve.memory.stores._sql.key_file import _FIRST, Slots
from meve.memory.stores._sql.key_place import FilePlace
from meve.memory.stores._sql.transaction import FREE_READS
from tests.memories import as_argument, open_memory, read_sql, run_sql
from tests.memory.sealed_files import Workload, copy_to, key_file, words_in_files
from tests.warm_process import execute, warm_process

MASTER = b"a master key, long enough for it"
read = keys_module.read_at


def test_nothing_stored_stands_readable_in_any_file(file, clock):
    with open_memory(file, clock=clock) as memory:
        work = Workload(memory, seed=3)
        for _ in range(40):
            work.add()
        words = {word for *_, each in work.live.values() for word in each}
        assert words_in_files(file.parent, words) == set()
        vector = memory._runtime.store.find("s:user0qzx", "f0")
        assert vector is None or vector.vector.tobytes() not in file.read_bytes()


def test_copy_of_the_database_from_before_and_the_keys_from_after_hold_nothing(file, clock, tmp_path):
    memory = open_memory(file, clock=clock)
    work = Workload(memory, seed=5)
    for _ in range(60):
        work.add()
    memory.close()
    before = copy_to(file, tmp_path / "before")
    memory = open_memory(file, clock=clock)
    work.memory = memory
    for _ in range(40):
        work.erase()
    memory.close()
    shutil.copy(key_file(file), key_file(before))
    with open_memory(before, clock=clock, accept_older=True) as restored:
        shown = repr([restored.export(user_id=f"user{n}qzx") | {"audit": ()} for n in range(5)]).lower()
    assert {word for word in work.gone if word in shown} == set()
    still = {w for kind, _, words in work.live.values() for w in words if kind in ("fact", "item", "archived")}
    assert {word for word in still if word in shown} == still


def test_key_file_is_private_and_small(memory, file):
    memory.add("I like tea.", user_id="alice")
    assert stat.S_IMODE(key_file(file).stat().st_mode) == 0o600
    assert key_file(file).stat().st_size < 64_000


def test_slots_are_used_again(file, monkeypatch):
    monkeypatch.setattr(keys_module, "_CHUNK", 32)
    with open_memory(file) as memory:
        for n in range(100):
            memory.items.put(("n",), "k", {"n": n}, user_id="alice")
    assert key_file(file).stat().st_size <= _FIRST + 64 * keys_module._SLOT


def test_first_search_of_a_user_reads_the_keys_near_this_users_alone(file, monkeypatch):
    """A memory of many users has a large key file, of which the first search of each user reads little."""
    with open_memory(file) as memory:
        for n in range(80):
            memory.add(f"Bread number {n} is baked.", user_id="alice", source="doc")
    Slots(FilePlace(key_file(file)), b"").make(100_000)
    assert key_file(file).stat().st_size > 3_000_000
    sizes = []
    monkeypatch.setattr(keys_module, "read_at", lambda *given: sizes.append(len(read(*given))) or read(*given))
    with open_memory(file) as memory:
        assert len(memory.list(user_id="alice")) == 80
        assert memory.search("Which bread is baked?", user_id="alice").records
    assert sum(sizes) < 200_000


def test_same_content_keeps_its_key(memory, file):
    memory.add("I like tea.", user_id="alice", id="tea")
    before = key_file(file).read_bytes()[_FIRST:]
    memory.hold("tea", user_id="alice")
    memory.release("tea", user_id="alice")
    memory.update("tea", user_id="alice", ttl=timedelta(days=3))
    assert key_file(file).read_bytes()[_FIRST:] == before
    memory.update("tea", user_id="alice", tags=["drinks"])
    assert key_file(file).read_bytes()[_FIRST:] != before


def test_missing_key_file_is_named_and_nothing_is_changed(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    saved = key_file(file).read_bytes()
    key_file(file).unlink()
    for _ in range(2):
        with pytest.raises(KeyFileError, match=r"memory\.(db\.)?keys is missing.*restore the key file"):
            open_memory(file, clock=clock)
    assert not key_file(file).exists()
    key_file(file).write_bytes(saved)
    with open_memory(file, clock=clock) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


def test_key_file_of_another_memory_is_refused(file, clock, tmp_path):
    other = tmp_path / "other.db"
    for each in (file, other):
        with open_memory(each, clock=clock) as memory:
            memory.add("I like tea.", user_id="alice", id="tea")
    saved = key_file(file).read_bytes()
    shutil.copy(key_file(other), key_file(file))
    with pytest.raises(KeyFileError, match=r"keys of another memory: put back"):
        open_memory(file, clock=clock)
    key_file(file).write_bytes(saved)
    with open_memory(file, clock=clock) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


@pytest.mark.parametrize("content", [b"shopping: tea\n", bytes(100) + b"x" * 5_000])
def test_file_in_place_of_the_keys_of_a_new_memory_is_not_overwritten(file, clock, content):
    """Somebody's own file; an empty one, or one of zeros, is left by a process that was stopped."""
    key_file(file).write_bytes(content)
    with pytest.raises(KeyFileError, match="exists, and is no key file: give another path, or move it away"):
        open_memory(file, clock=clock)
    assert key_file(file).read_bytes() == content
    key_file(file).write_bytes(bytes(5_000))
    open_memory(file, clock=clock).close()


@pytest.mark.parametrize("content", [b"", b"x" * 5_000])
def test_damaged_key_file_is_refused(file, clock, content):
    open_memory(file, clock=clock).close()
    key_file(file).write_bytes(content)
    with pytest.raises(KeyFileError, match="is no key file, or damaged"):
        open_memory(file, clock=clock)


def test_older_key_file_is_refused_and_nothing_is_removed(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        older = key_file(file).read_bytes()
        memory.update("tea", user_id="alice", text="I like coffee.")
    newer = key_file(file).read_bytes()
    key_file(file).write_bytes(older)
    with pytest.raises(KeyFileError, match="older than the memory"):
        open_memory(file, clock=clock)
    key_file(file).write_bytes(newer)
    with open_memory(file, clock=clock) as memory:
        assert memory.get("tea", user_id="alice").text == "I like coffee."


def test_older_database_beside_the_newest_keys_is_refused_and_no_key_is_destroyed(file, clock, tmp_path):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
    backup = copy_to(file, tmp_path / "backup")
    with open_memory(file, clock=clock) as memory:
        memory.delete("s", user_id="alice")
        memory.add("I like tea.", user_id="alice", id="tea")
    shutil.copy(key_file(file), key_file(backup))
    for _ in range(2):
        with pytest.raises(KeyFileError, match=r" is older than memory\.(db\.)?keys: .*accept_older=True"):
            open_memory(backup, clock=clock)
    assert key_file(backup).read_bytes() == key_file(file).read_bytes()
    with open_memory(file, clock=clock) as memory:
        assert [r.text for r in memory.list(user_id="alice")] == ["I like tea."]
    with open_memory(backup, clock=clock, accept_older=True) as memory:
        assert memory.list(user_id="alice") == []
    shutil.copy(key_file(backup), key_file(file))  # what was added since the backup has no key any more
    with open_memory(file, clock=clock, accept_older=True) as memory:
        assert memory.list(user_id="alice") == []
    open_memory(file, clock=clock).close()


def test_keys_of_a_lost_memory_are_not_overwritten(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    saved, keys = file.read_bytes(), key_file(file).read_bytes()
    for path in file.parent.glob(f"{file.name}*"):
        if path != key_file(file):
            path.unlink()
    with pytest.raises(KeyFileError, match="restore that memory, or move the key file away"):
        open_memory(file, clock=clock)
    assert key_file(file).read_bytes() == keys
    file.write_bytes(saved)
    with open_memory(file, clock=clock) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


@pytest.mark.parametrize("way", ["bytes", "file", "function"])
def test_master_key_locks_the_key_file(file, clock, tmp_path, way):
    (tmp_path / "master").write_bytes(MASTER)
    master = {"bytes": MASTER, "file": tmp_path / "master", "function": lambda: MASTER}[way]
    with open_memory(file, clock=clock, master_key=master) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    with pytest.raises(KeyFileError, match="locked with a master key, and none was given"):
        open_memory(file, clock=clock)
    with pytest.raises(KeyFileError, match="locked with another master key"):
        open_memory(file, clock=clock, master_key=b"another master key, long enough")
    with open_memory(file, clock=clock, master_key=master) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


def test_master_key_locks_the_key_file_of_an_older_memory(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    open_memory(file, clock=clock, master_key=MASTER).close()
    with pytest.raises(KeyFileError, match="locked"):
        open_memory(file, clock=clock)
    with open_memory(file, clock=clock, master_key=MASTER) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


def test_invalid_master_key_is_refused(file, tmp_path):
    for master in ("a text", b"short", 5):
        with pytest.raises(ConfigurationError, match="master_key must be"):
            open_memory(file, master_key=master)
    with pytest.raises(ConfigurationError, match="at least 16 bytes"):
        open_memory(file, master_key=lambda: b"short")
    with pytest.raises(KeyFileError, match="can't be read"):
        open_memory(file, master_key=tmp_path / "missing")
    open_memory(file).close()  # nothing was created that is in the way


def test_two_processes_write_with_keys_of_their_own(file, clock):
    code = """
import sys
from tests.memories import as_place, open_memory
with open_memory(as_place(sys.argv[1])) as memory:
    for n in range(60):
        memory.add(f"fact {n}", user_id=sys.argv[2], id=f"{sys.argv[2]}{n}")
        if n % 2:
            memory.delete(f"{sys.argv[2]}{n - 1}", user_id=sys.argv[2])
"""
    with ExitStack() as stack:
        running = [stack.enter_context(warm_process(execute, code, as_argument(file), n)) for n in ("alice", "bob")]
        assert [output.read() for _, output in running] == [""] * 2
    with open_memory(file, clock=clock) as memory:
        for name in ("alice", "bob"):
            assert sorted(r.id for r in memory.list(user_id=name)) == sorted(f"{name}{n}" for n in range(1, 60, 2))
        slots = [s for (s,) in read_sql(file, "SELECT slot FROM memories UNION ALL SELECT slot FROM users")]
        free = {s for (s,) in read_sql(file, "SELECT slot FROM free_slots")}
        assert len(slots) == len(set(slots))
        assert free.isdisjoint(slots)


def test_readers_see_each_record_while_it_is_written_anew(file, clock):
    """A reader whose state still has the former row finds its key destroyed, and reads the newest state."""
    with open_memory(file, clock=clock) as memory, open_memory(file, clock=clock) as reader:
        memory.add("version 0", user_id="alice", id="s")
        missing, stop = [], threading.Event()

        def read():
            while not stop.is_set():
                if [r.id for r in reader.list(user_id="alice")] != ["s"]:
                    missing.append(1)

        thread = threading.Thread(target=read)
        thread.start()
        for n in range(100):
            memory.update("s", user_id="alice", text=f"version {n + 1}")
        stop.set()
        thread.join()
        assert missing == []


def test_reader_finds_a_record_that_is_written_anew_whenever_it_looks(file, clock, monkeypatch):
    with open_memory(file, clock=clock) as memory, open_memory(file, clock=clock) as reader:
        memory.add("version 0", user_id="alice", id="s")
        writers = []
        read_bytes = Slots._bytes

        def write_before_the_keys_are_read(slots, slot):
            if threading.current_thread() is threading.main_thread() and len(writers) < 40:
                text = f"version {len(writers) + 1}"
                writers.append(
                    threading.Thread(target=memory.update, args=["s"], kwargs=dict(user_id="alice", text=text))
                )
                writers[-1].start()
                writers[-1].join(0.5)
            return read_bytes(slots, slot)

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "_bytes", write_before_the_keys_are_read)
            assert [r.id for r in reader.list(user_id="alice")] == ["s"]
            assert len(writers) > FREE_READS
        for writer in writers:
            writer.join()


def test_record_without_a_key_is_left_out_and_stops_no_writer(file, clock):
    with open_memory(file, clock=clock) as memory:
        for name in ("s", "tea"):
            memory.add(f"I like {name}.", user_id="alice", id=name)
        run_sql(file, "UPDATE memories SET sealed = zeroblob(200) WHERE id = {alice/s}")
        assert [r.id for r in memory.list(user_id="alice")] == ["tea"]
        assert [e.record_id for e in memory.audit.events(user_id="alice")] == ["s", "tea"]
        memory.update("tea", user_id="alice", text="I like coffee.")
        assert [r.text for r in memory.list(user_id="alice")] == ["I like coffee."]


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO free_slots VALUES (-128, 0)",  # the place of the key file's header
        "INSERT INTO free_slots VALUES (1000000000000, 0)",
        "UPDATE meta SET value = 'many' WHERE name = 'slots'",
        "UPDATE meta SET value = '-3' WHERE name = 'key_changes'",
        "UPDATE memories SET slot = 9223372036854775807",
        "UPDATE memories SET slot = -128",
        "UPDATE users SET version = 9223372036854775807",
        "UPDATE memories SET reflection = 9e999",
    ],
)
def test_forged_number_in_the_database_reaches_no_key_of_others(file, clock, change):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    saved = file.read_bytes()
    run_sql(file, change)
    before = key_file(file).read_bytes()
    for attempt in (
        lambda memory: memory.list(user_id="alice"),
        lambda memory: memory.search("tea", user_id="alice"),
        lambda memory: memory.add("More.", user_id="alice"),
        lambda memory: memory.forget_user(user_id="bob"),
    ):
        with suppress(StorageError), open_memory(file, clock=clock) as memory:
            attempt(memory)
    assert len(key_file(file).read_bytes()) == len(before)
    for path in file.parent.glob(f"{file.name}-*"):
        path.unlink()
    file.write_bytes(saved)
    with open_memory(file, clock=clock) as memory:
        assert memory.get("tea", user_id="alice").text == "I like tea."


def test_database_in_ram_is_refused():
    with pytest.raises(StorageError, match="store="):
        GovernedMemory.open(":memory:")
    assert not Path(":memory:").exists()
