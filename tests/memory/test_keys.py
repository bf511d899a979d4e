"""Erasure as the destruction of a key: the key file beside a memory's database."""

import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from meve.conversation import Turn
from meve.errors import ConfigurationError, KeyFileError, StorageError
from meve.memory import GovernedMemory
from meve.memory.stores.sqlite._key_file import Slots
from meve.memory.stores.sqlite._vault import Vault
from meve.memory.stores.sqlite.store import SqliteStore
from meve.memory.turns import add_turns
from tests.memories import KEY, as_plain, open_memory, run_sql

MASTER = b"a master key, long enough for it"


def key_file(file):
    return file.with_name(f"{file.name}.keys")


def words_in_files(folder, words):
    """Return the words that stand in any file of a folder."""
    texts = [path.read_bytes().lower() for path in folder.rglob("*") if path.is_file()]
    return {word for word in words if any(word.encode() in text for text in texts)}


def copy_to(file, folder):
    """Copy a memory's files, by another process: in this one, closing them would release SQLite's locks."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["cp", *file.parent.glob(f"{file.name}*"), folder], check=True)
    return folder / file.name


def sentinels(n):
    """Return words that stand in the text, tag, session, metadata, name and value of entry `n`, and nowhere else."""
    return [f"{part}qzx{n}zyxomma" for part in ("text", "tag", "session", "meta", "name", "value", "said")]


class Workload:
    """Adds entries of all kinds, and erases them in all ways; keeps what must be gone and what must still be there."""

    def __init__(self, memory, seed=0):
        self.memory, self.random = memory, random.Random(seed)
        self.live, self.gone = {}, set()
        self.count = 0

    def add(self):
        n, self.count = self.count, self.count + 1
        text, tag, session, meta, name, value, said = words = sentinels(n)
        user = f"user{n % 5}qzx"
        kind = self.random.choice(["fact", "long", "item", "message", "archived"])
        memory = self.memory
        if kind == "item":
            memory.items.put((name, "x"), name, {"value": value}, user_id=user)
            words = [name, value]
        elif kind == "message":
            memory.messages.add(session, [{"role": "user", "text": said}], user_id=user, ids=[f"m{n}"])
            words = [session, said]
        else:
            body = f"{text} likes tea. " * (60 if kind == "long" else 1)
            memory.add(
                body, user_id=user, id=f"f{n}", tags=[tag], session_id=session, metadata={"note": meta}, source="doc",
                policy_class="canonical",
            )  # fmt: skip
            words = [text, tag, session, meta]
            if kind == "archived":
                self._change(f"s:{user}", f"f{n}", archived=True)
        self.live[n] = (kind, user, words)

    def _change(self, user, record_id, **changes):
        with self.memory._runtime.store.writing() as transaction:
            stored = transaction.find(user, record_id)
            record = replace(stored.record, **changes)
            transaction.replace(user, replace(stored, record=record))
            now = self.memory.clock.now()
            transaction.log(self.memory._runtime.event(user, record, "archive", "a test", now))

    def erase(self):
        n = self.random.choice(list(self.live))
        kind, user, words = self.live.pop(n)
        memory, (_, _, session, _, name, _, _) = self.memory, sentinels(n)
        if kind == "item":
            if self.random.random() < 0.5:
                assert memory.items.delete((name, "x"), name, user_id=user)
            else:
                assert memory.items.delete_namespace((name,), user_id=user).erased
        elif kind == "message":
            memory.messages.pop(session, user_id=user)
        elif self.random.random() < 0.3:
            memory.update(f"f{n}", user_id=user, text="Another text.", tags=[], metadata={})
            words = [word for word in words if word != session]
        elif self.random.random() < 0.3:
            assert memory.forget_session(session, user_id=user).erased
        else:
            assert memory.delete(f"f{n}", user_id=user).erased
        self.gone.update(words)


@pytest.mark.parametrize("master_key", [None, MASTER])
def test_mixed_erasures_leave_no_word_in_any_file(file, clock, tmp_path, master_key):
    with open_memory(file, clock=clock, master_key=master_key) as memory:
        work = Workload(memory)
        for n in range(300):
            work.add()
            if n % 3:
                work.erase()
        assert len(work.gone) > 300
        assert words_in_files(file.parent, work.gone | {w for *_, words in work.live.values() for w in words}) == set()
        assert memory.audit.verify().ok


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


def test_slots_are_used_again(memory, file):
    for n in range(1_200):
        memory.items.put(("n",), "k", {"n": n}, user_id="alice")
    assert key_file(file).stat().st_size < 64_000


def test_same_content_keeps_its_key(memory, file):
    memory.add("I like tea.", user_id="alice", id="tea")
    before = key_file(file).read_bytes()
    memory.hold("tea", user_id="alice")
    memory.release("tea", user_id="alice")
    memory.update("tea", user_id="alice", ttl=timedelta(days=3))
    assert key_file(file).read_bytes() == before
    memory.update("tea", user_id="alice", tags=["drinks"])
    assert key_file(file).read_bytes() != before


def test_missing_key_file_is_named_and_nothing_is_changed(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    saved = key_file(file).read_bytes()
    key_file(file).unlink()
    for _ in range(2):
        with pytest.raises(KeyFileError, match=r"memory\.db\.keys is missing.*restore the key file"):
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
    newest = copy_to(file, tmp_path / "newest")
    shutil.copy(backup, file)
    for _ in range(2):
        with pytest.raises(KeyFileError, match=r"memory\.db is older than memory\.db\.keys.*accept_older=True"):
            open_memory(file, clock=clock)
    assert key_file(file).read_bytes() == key_file(newest).read_bytes()
    shutil.copy(newest, file)
    with open_memory(file, clock=clock) as memory:
        assert [r.text for r in memory.list(user_id="alice")] == ["I like tea."]
    shutil.copy(backup, file)
    with open_memory(file, clock=clock, accept_older=True) as memory:
        assert memory.list(user_id="alice") == []
    shutil.copy(newest, file)  # what was added since the backup has no key any more
    with open_memory(file, clock=clock, accept_older=True) as memory:
        assert memory.list(user_id="alice") == []
    open_memory(file, clock=clock).close()


def test_failure_to_note_a_destruction_does_not_make_the_database_seem_older(file, clock, monkeypatch):
    """Several erasures whose second transactions fail, and then a kill."""
    with open_memory(file, clock=clock) as memory:
        for n in range(4):
            memory.add("Zyxomma flies.", user_id="alice", id=f"s{n}")
        renew = Vault.renew_released

        def renew_and_fail(self):
            renew(self)
            raise StorageError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(Vault, "renew_released", renew_and_fail)
            for n in range(3):
                with pytest.raises(StorageError, match="no space left"):
                    memory.delete(f"s{n}", user_id="alice")
    subprocess.run(
        [sys.executable, "-c", KILLED.replace('"s"', '"s3"'), str(file), "after the keys", "delete"], check=False
    )
    with open_memory(file, clock=clock) as memory:
        assert memory.list(user_id="alice") == []


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


KILLED = """
import os, signal, sys
from pathlib import Path
from meve import _sqlite
from meve.memory.stores.sqlite import _key_file, store
from tests.memories import open_memory
memory = open_memory(Path(sys.argv[1]))
def die(*_args):
    os.kill(os.getpid(), signal.SIGKILL)
where = sys.argv[2]
if where == "before the keys":
    _key_file.Slots.renew = die
elif where == "after the keys":
    renew = _key_file.Slots.renew
    def renew_and_die(self, slots, changes):
        renew(self, slots, changes)
        die()
    _key_file.Slots.renew = renew_and_die
elif where == "before the commit":
    store.SqliteTransaction.finish = die
if sys.argv[3] == "delete":
    memory.delete("s", user_id="alice")
else:
    memory.update("s", user_id="alice", text="Another text.", tags=[])
"""


@pytest.mark.parametrize("change", ["delete", "update"])
@pytest.mark.parametrize("where", ["before the keys", "after the keys", "before the commit"])
def test_process_killed_between_row_and_key_leaves_nothing_in_between(file, clock, tmp_path, where, change):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s", tags=["zyxomma"])
        memory.add("I like tea.", user_id="alice", id="tea")
    before = copy_to(file, tmp_path / "before")
    code = subprocess.run([sys.executable, "-c", KILLED, str(file), where, change], check=False).returncode
    assert code == -signal.SIGKILL
    with open_memory(file, clock=clock) as memory:
        texts = {r.text for r in memory.list(user_id="alice")}
        assert memory.audit.verify().ok
        memory.add("More.", user_id="alice")
    if where == "before the commit":  # nothing was acknowledged
        assert texts == {"Zyxomma flies.", "I like tea."}
        return
    assert texts == {"I like tea."} | ({"Another text."} if change == "update" else set())
    shutil.copy(key_file(file), key_file(before))
    with open_memory(before, clock=clock, accept_older=True) as restored:
        assert {r.text for r in restored.list(user_id="alice")} == {"I like tea."}


def test_keys_that_a_killed_process_left_are_destroyed_by_the_next_writer(file, clock, tmp_path):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
        before = copy_to(file, tmp_path / "before")
        done = subprocess.run([sys.executable, "-c", KILLED, str(file), "before the keys", "delete"], check=False)
        assert done.returncode == -signal.SIGKILL
        memory.add("I like tea.", user_id="alice", id="tea")
        shutil.copy(key_file(file), key_file(before))
        with open_memory(before, clock=clock, accept_older=True) as restored:
            assert restored.list(user_id="alice") == []


def test_failed_destruction_is_reported_and_made_up_for(file, clock, tmp_path, monkeypatch):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
        before = copy_to(file, tmp_path / "before")

        def fail(self, slots, changes):
            raise KeyFileError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "renew", fail)
            with pytest.raises(StorageError, match="keys of what it erased still stand"):
                memory.delete("s", user_id="alice")
        assert memory.list(user_id="alice") == []
        memory.add("I like tea.", user_id="alice", id="tea")
        shutil.copy(key_file(file), key_file(before))
        with open_memory(before, clock=clock, accept_older=True) as restored:
            assert restored.list(user_id="alice") == []


def rows_of(file):
    """Return all values of all rows of a database, as text."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])


@pytest.mark.parametrize("audit_key", [None, KEY])
def test_forgotten_user_is_named_in_no_row(file, clock, audit_key):
    with open_memory(file, clock=clock, audit_key=audit_key) as memory:
        memory.add("I like tea.", user_id="alicezyx", id="alicezyx-tea", ttl=timedelta(days=5))
        memory.add("Tea is hot.", user_id="alicezyx", id="alicezyx-hot", derived_from=["alicezyx-tea"])
        memory.update("alicezyx-tea", user_id="alicezyx", ttl=timedelta(days=3))
        memory.supersede("alicezyx-tea", "I like coffee.", user_id="alicezyx", id="alicezyx-new")
        memory.add("I like tea.", user_id="bob", id="tea")
        names = {e.record_id for e in memory.audit.events(action="add")}
        assert names == {"alicezyx-tea", "alicezyx-hot", "alicezyx-new", "tea"}
        assert any("alicezyx-tea" in e.reason for e in memory.audit.events(user_id="alicezyx", action="update"))
        memory.forget_user(user_id="alicezyx")
        assert "alicezyx" not in rows_of(file)
        assert {e.record_id for e in memory.audit.events(user_id="bob")} == {"tea"}
        erased = memory.audit.events(user_id="alicezyx", record_id="alicezyx-tea", action="delete")
        assert [(e.user_id, e.record_id) for e in erased] == [("alicezyx", "alicezyx-tea")]
        certificate = memory.audit.certificate(user_id="alicezyx", record_ids=["alicezyx-tea"])
        assert [e.record_id for e in certificate.entries] == ["alicezyx-tea"]
        assert memory.audit.check_certificate(certificate).ok
        assert memory.audit.verify().ok
        assert memory.add("I like coffee.", user_id="alicezyx", id="tea").text == "I like coffee."
        assert [r.text for r in memory.list(user_id="alicezyx")] == ["I like coffee."]
    assert b"alicezyx" not in b"".join(path.read_bytes() for path in file.parent.iterdir())


def test_name_of_an_erased_item_is_in_no_row_and_of_a_stored_one_is_shown(file, clock):
    with open_memory(file, clock=clock) as memory:
        for key in ("hivzyx", "teazyx"):
            memory.items.put(("health",), key, {"n": 1}, user_id="alice")
        memory.items.delete(("health",), "hivzyx", user_id="alice")
        names = [e.record_id for e in memory.audit.events(user_id="alice")]
        assert names[1] == '[["health"],"teazyx"]'
        assert names[0] == names[2]
        assert names[0].startswith("r:")
    assert not words_in_files(file.parent, {"hivzyx", "teazyx"})


def test_id_of_a_fact_that_was_said_again_is_in_no_row(file, clock):
    with open_memory(file, clock=clock) as memory:
        for session in ("s1", "s2"):
            turn = Turn(id=session, speaker="user", text="I live in Lyon.")
            result = add_turns(memory, [turn], user_id="alice", session_id=session)
        (said,) = result.confirmed
    with closing(sqlite3.connect(file)) as connection:
        log = str(connection.execute("SELECT * FROM audit").fetchall())
    assert "said again" in log
    assert said not in log


def test_log_holds_no_hash_of_content_without_a_key(file, clock):
    """A PIN could be guessed from it."""
    with open_memory(file, clock=clock, audit_key=None) as memory:
        memory.items.put(("pins",), "bank", {"pin": "4711"}, user_id="alice")
        memory.items.search(("pins",), user_id="alice", query="4711")
        memory.messages.add("s", [{"pin": "4711"}], user_id="alice")
        details = [e.detail for e in memory.audit.events()]
    assert details
    assert not any({"content", "query"} & detail.keys() for detail in details)


def test_export_holds_no_digest_and_no_place_in_the_log_of_all_users(memory):
    memory.add("I like tea.", user_id="alice", id="tea")
    (entry,) = memory.export(user_id="alice")["audit"]
    assert (entry["record_id"], entry["action"]) == ("tea", "add")
    assert not {"seq", "digest"} & entry.keys()


def test_two_processes_write_with_keys_of_their_own(file, clock):
    code = """
import sys
from pathlib import Path
from tests.memories import open_memory
with open_memory(Path(sys.argv[1])) as memory:
    for n in range(60):
        memory.add(f"fact {n}", user_id=sys.argv[2], id=f"{sys.argv[2]}{n}")
        if n % 2:
            memory.delete(f"{sys.argv[2]}{n - 1}", user_id=sys.argv[2])
"""
    children = [subprocess.Popen([sys.executable, "-c", code, str(file), name]) for name in ("alice", "bob")]
    assert [child.wait(120) for child in children] == [0, 0]
    with open_memory(file, clock=clock) as memory:
        for name in ("alice", "bob"):
            assert sorted(r.id for r in memory.list(user_id=name)) == sorted(f"{name}{n}" for n in range(1, 60, 2))
        with sqlite3.connect(file) as connection:
            slots = [s for (s,) in connection.execute("SELECT slot FROM memories UNION ALL SELECT slot FROM users")]
            free = {s for (s,) in connection.execute("SELECT slot FROM free_slots")}
        connection.close()
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
        expect = Slots.expect

        def write_before_the_keys_are_read(slots, *count):
            if threading.current_thread() is threading.main_thread() and len(writers) < 40:
                text = f"version {len(writers) + 1}"
                writers.append(
                    threading.Thread(target=memory.update, args=["s"], kwargs=dict(user_id="alice", text=text))
                )
                writers[-1].start()
                writers[-1].join(0.5)
            expect(slots, *count)

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "expect", write_before_the_keys_are_read)
            assert [r.id for r in reader.list(user_id="alice")] == ["s"]
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


def test_plain_file_is_sealed_when_it_is_opened(file, clock, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)  # as before there were keys
        with open_memory(file, clock=clock) as memory:
            work = Workload(memory, seed=9)
            for _ in range(60):
                work.add()
            exported = {n: stored_of(memory, n) for n in range(5)}
            verified, heads = memory.audit.verify(), [memory.audit.head()]
        as_plain(file)
    words = {word for *_, each in work.live.values() for word in each}
    plain = {word for kind, _, each in work.live.values() for word in each if kind != "archived"}  # it is compressed
    assert words_in_files(file.parent, plain) == plain
    for _ in range(2):
        with open_memory(file, clock=clock) as memory:
            assert words_in_files(file.parent, {*words, "user0qzx"}) == set()
            assert {n: stored_of(memory, n) for n in range(5)} == exported
            assert memory.audit.verify() == verified
            assert all(memory.audit.verify(head).ok for head in heads)
    assert words_in_files(file.parent, words) == set()


def stored_of(memory, n):
    return {**memory.export(user_id=f"user{n}qzx"), "exported_at": "", "audit": ()}


@pytest.mark.parametrize("audit_key", [None, KEY])
def test_log_of_a_plain_file_names_nobody_and_stays_provable(file, clock, monkeypatch, audit_key):
    """Neither an erased item's key nor a forgotten user's name stands in it."""
    heads = []
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)
        with open_memory(file, clock=clock, audit_key=audit_key) as memory:
            memory.add("I like tea.", user_id="alicezyx", id="teazyx")
            memory.items.put(("health",), "hivzyx", {"n": 1}, user_id="alicezyx")
            heads.append(memory.audit.head())
            memory.items.delete(("health",), "hivzyx", user_id="alicezyx")
            memory.supersede("teazyx", "I like coffee.", user_id="alicezyx", id="newzyx")
            memory.add("I like tea.", user_id="bobzyx", id="s")
            memory.forget_user(user_id="bobzyx")
            heads.append(memory.audit.head())
            events = memory.audit.events(user_id="alicezyx")
        as_plain(file)
    assert words_in_files(file.parent, {"bobzyx", "hivzyx"}) == {"bobzyx", "hivzyx"}
    with open_memory(file, clock=clock, audit_key=audit_key) as memory:
        assert words_in_files(file.parent, {"bobzyx", "alicezyx", "hivzyx", "teazyx"}) == set()
        assert all(memory.audit.verify(head).ok for head in heads)
        wrong = replace(heads[0], digest=heads[1].digest)
        assert "differs from the head that was kept" in memory.audit.verify(wrong).problem
        found = memory.audit.events(user_id="alicezyx")
        assert [(e.at, e.action, e.user_id, e.reason) for e in found] == [
            (e.at, e.action, e.user_id, e.reason) for e in events
        ]
        assert [e.record_id for e in found if e.action == "supersede"] == ["teazyx"]
        assert [e.action for e in memory.audit.events(user_id="bobzyx", record_id="s")] == ["add", "delete"]
        certificate = memory.audit.certificate(user_id="bobzyx", record_ids=["s"])
        assert memory.audit.check_certificate(certificate).ok
        memory.forget_user(user_id="alicezyx")
        assert "zyx" not in rows_of(file)
        assert memory.audit.verify().ok


def test_log_of_a_plain_file_that_is_not_intact_stays_as_it_is(file, clock, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "names_key", None)
        with open_memory(file, clock=clock) as memory:
            memory.add("I like tea.", user_id="alice", id="tea")
            memory.add("I like coffee.", user_id="alice", id="coffee")
        as_plain(file)
    run_sql(file, "UPDATE audit SET reason = 'forged' WHERE seq = 2")
    for _ in range(2):
        with open_memory(file, clock=clock) as memory:
            assert memory.audit.verify().problem == "entry 2 was altered, or the entry before it"
            assert [e.reason for e in memory.audit.events()] == ["on request", "forged"]


def test_process_killed_while_sealing_a_plain_file_leaves_it_plain(file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
    as_plain(file)
    code = """
import os, signal, sys
from pathlib import Path
from meve.memory.stores.sqlite import store
from tests.memories import open_memory
seal = store.seal_plain_rows
def seal_and_die(vault):
    seal(vault)
    os.kill(os.getpid(), signal.SIGKILL)
store.seal_plain_rows = seal_and_die
open_memory(Path(sys.argv[1]))
"""
    assert subprocess.run([sys.executable, "-c", code, str(file)], check=False).returncode == -signal.SIGKILL
    with open_memory(file, clock=clock) as memory:
        assert [r.text for r in memory.list(user_id="alice")] == ["Zyxomma flies."]
    assert words_in_files(file.parent, {"zyxomma"}) == set()


def test_plain_pages_that_a_reader_kept_are_dropped_at_the_next_opening(file, clock, monkeypatch):
    monkeypatch.setattr("meve._sqlite.WAIT_SECONDS", 0.1)
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
    as_plain(file)
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM memories").fetchall()
    with open_memory(file, clock=clock) as memory:
        assert memory.get("s", user_id="alice").text == "Zyxomma flies."
    assert words_in_files(file.parent, {"zyxomma"}) == {"zyxomma"}
    reader.close()
    with open_memory(file, clock=clock):
        assert words_in_files(file.parent, {"zyxomma"}) == set()


def test_database_in_ram_is_refused():
    with pytest.raises(StorageError, match="store="):
        GovernedMemory.open(":memory:")
    assert not Path(":memory:").exists()
