"""Test that a crash or an error between a row and its key leaves nothing that can be read."""

import shutil
import signal
from contextlib import closing, contextmanager

import pytest

from meve.errors import KeyFileError, StorageError
from meve.memory.stores._sql.key_file import TAKEN, Slots
from meve.memory.stores._sql.transaction import SqlTransaction
from meve.memory.stores._sql.vault import Vault
from tests.memories import as_argument, open_memory, open_store
from tests.memory.sealed_files import copy_to, key_file
from tests.warm_process import run_code

KILLED = """
import os, signal, sys
from meve.memory.stores._sql import key_file, transaction
from tests.memories import as_place, open_memory
memory = open_memory(as_place(sys.argv[1]))
def die(*_args):
    os.kill(os.getpid(), signal.SIGKILL)
where = sys.argv[2]
if where == "before the keys":
    key_file.Slots.renew = die
elif where == "after the keys":
    renew = key_file.Slots.renew
    def renew_and_die(self, slots, numbers):
        renew(self, slots, numbers)
        die()
    key_file.Slots.renew = renew_and_die
elif where == "before the commit":
    transaction.SqlTransaction.finish = die
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
    assert run_code(KILLED, as_argument(file), where, change) == (-signal.SIGKILL, "")
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
        assert run_code(KILLED, as_argument(file), "before the keys", "delete") == (-signal.SIGKILL, "")
        memory.add("I like tea.", user_id="alice", id="tea")
        shutil.copy(key_file(file), key_file(before))
        with open_memory(before, clock=clock, accept_older=True) as restored:
            assert restored.list(user_id="alice") == []


def test_erasure_by_another_process_during_opening_does_not_make_the_database_seem_older(file, clock, monkeypatch):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
        noted = Slots.noted

        def erase_first(self, place):  # after the database was read, and before the keys are
            monkeypatch.setattr(Slots, "noted", noted)
            memory.delete("s", user_id="alice")
            return noted(self, place)

        monkeypatch.setattr(Slots, "noted", erase_first)
        with open_memory(file, clock=clock) as other:
            assert other.list(user_id="alice") == []


UNFINISHED = """
import os, signal, sys
from meve.memory.stores._sql.transaction import SqlTransaction
from tests.memories import as_place, open_memory
def die(transaction):
    for (sealed,) in transaction._connection.execute("SELECT sealed FROM memories WHERE tenant = :tenant").fetchall():
        print(bytes(sealed)[:8].hex(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
memory = open_memory(as_place(sys.argv[1]))
SqlTransaction.finish = die
memory.add("Zyxomma flies.", user_id="bob", id="z")
"""


@pytest.mark.parametrize("change", ["add", "forget"])
def test_key_of_an_unfinished_change_is_destroyed_by_the_next_change_and_never_used_again(
    file, clock, tmp_path, change
):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        memory.add("I like rum.", user_id="alice", id="rum")
        memory.delete("rum", user_id="alice")  # a slot is free
    before = copy_to(file, tmp_path / "before")
    code, printed = run_code(UNFINISHED, as_argument(file))
    assert code == -signal.SIGKILL
    tea, unfinished = sorted(
        map(bytes.fromhex, printed.split()), key=key_file(file).read_bytes().find
    )  # the free slots come after
    assert unfinished in key_file(file).read_bytes()
    with open_memory(file, clock=clock) as memory:
        if change == "add":
            memory.add("More.", user_id="alice", id="more")
        else:
            memory.forget_user(user_id="carol")
        keys = key_file(file).read_bytes()
        assert unfinished not in keys
        assert tea in keys
        size = len(keys)
        for n in range(20):
            memory.add("More.", user_id="alice", id=f"more {n}")
        assert len(key_file(file).read_bytes()) == size  # what was free is used
        assert memory.audit.verify().ok
    shutil.copy(key_file(file), key_file(before))
    with open_memory(before, clock=clock) as restored:  # nothing was erased since
        assert [r.id for r in restored.list(user_id="alice")] == ["tea"]


def test_key_of_a_change_that_failed_is_destroyed_by_the_next_change(memory, file, monkeypatch):
    marks = []

    def fail(transaction):
        rows = transaction._connection.execute("SELECT sealed FROM memories WHERE tenant = :tenant").fetchall()
        marks.extend(bytes(sealed)[:8] for (sealed,) in rows)
        raise RuntimeError("a test")

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "finish", fail)
        with pytest.raises(RuntimeError, match="a test"):
            memory.add("Zyxomma flies.", user_id="bob")
    (mark,) = marks
    assert mark in key_file(file).read_bytes()
    memory.add("I like tea.", user_id="alice")
    assert mark not in key_file(file).read_bytes()


@pytest.mark.parametrize("first", ["an addition", "a change without a key"])
def test_keys_of_what_an_older_database_lacks_are_kept(file, clock, tmp_path, first):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    before = copy_to(file, tmp_path / "before")
    with open_memory(file, clock=clock) as memory:
        memory.add("I like rum.", user_id="alice", id="rum")
    shutil.copy(key_file(file), key_file(before))
    with open_memory(before, clock=clock) as memory:  # by mistake
        if first == "a change without a key":
            memory.hold("tea", user_id="alice", why="a test")
        memory.add("I like milk.", user_id="alice", id="milk")
    shutil.copy(key_file(before), key_file(file))
    with open_memory(file, clock=clock) as memory:
        assert memory.get("rum", user_id="alice").text == "I like rum."


def test_key_file_from_before_the_end_of_an_unfinished_change_is_refused(file, clock, tmp_path, monkeypatch):
    with open_memory(file, clock=clock) as memory:
        fail_to_add(memory, monkeypatch)
    old = shutil.copy(key_file(file).resolve(), tmp_path / "old")
    with open_memory(file, clock=clock) as memory:
        memory.add("I like rum.", user_id="alice", id="rum")
    new = shutil.copy(key_file(file), tmp_path / "new")
    shutil.copy(old, key_file(file))
    with pytest.raises(KeyFileError, match="older than the memory"):
        open_memory(file, clock=clock)
    shutil.copy(new, key_file(file))
    with open_memory(file, clock=clock) as memory:
        assert memory.get("rum", user_id="alice").text == "I like rum."


@pytest.mark.parametrize("where", ["before the keys", "after the keys", "at the commit"])
def test_failed_end_of_an_unfinished_change_is_reported_and_made_up_for(memory, file, monkeypatch, where):
    renew, database = Slots.renew, memory._runtime.store.backend._database
    writing = database.writing

    def fail(*given):
        if where == "after the keys":
            renew(*given)
        fail_to_renew()

    @contextmanager
    def fail_to_commit(*, durable=True):
        with writing(durable=durable) as connection:
            yield connection
            if not durable:
                fail_to_renew()

    fail_to_add(memory, monkeypatch)
    size = key_file(file).stat().st_size
    with monkeypatch.context() as patch:
        if where == "at the commit":
            patch.setattr(database, "writing", fail_to_commit)
        else:
            patch.setattr(Slots, "renew", fail)
        for _ in range(3):
            with pytest.raises(StorageError, match=r"^nothing was changed in .*\(a test\)") as error:
                memory.add("I like tea.", user_id="alice")
    assert key_file(file).name in str(error.value)
    assert memory.list(user_id="alice") == []
    memory.add("I like tea.", user_id="alice")
    assert key_file(file).stat().st_size == size


def test_damaged_number_in_the_key_file_stops_no_change(memory, file):
    with key_file(file).open("r+b") as keys:
        keys.seek(TAKEN)
        keys.write(b"\xff" * 8)
    for text in ("I like tea.", "I like rum."):
        memory.add(text, user_id="alice")
    assert len(memory.list(user_id="alice")) == 2


def test_keys_of_what_an_accepted_older_database_lacks_are_destroyed_at_opening(file, clock, tmp_path):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
    before = copy_to(file, tmp_path / "before")
    kept = marks_of(file)
    with open_memory(file, clock=clock) as memory:
        memory.add("I like rum.", user_id="alice", id="rum")
    [added] = marks_of(file) - kept
    shutil.copy(key_file(file), key_file(before))
    open_memory(before, clock=clock).close()
    assert added in key_file(before).read_bytes()
    open_memory(before, clock=clock, accept_older=True).close()
    assert added not in key_file(before).read_bytes()
    assert all(mark in key_file(before).read_bytes() for mark in kept)


def fail_to_add(memory, monkeypatch):
    """Add a record in a transaction that fails when it has its key."""

    def fail(transaction):
        raise RuntimeError("a test")

    with monkeypatch.context() as patch:
        patch.setattr(SqlTransaction, "finish", fail)
        with pytest.raises(RuntimeError, match="a test"):
            memory.add("Zyxomma flies.", user_id="bob")


def fail_to_renew(*_):
    raise KeyFileError("a test")


def marks_of(file):
    """Return the marks of the keys of a memory's records."""
    with closing(open_store(file)) as store, store._database.reading() as connection:
        rows = connection.execute("SELECT sealed FROM memories WHERE tenant = :tenant").fetchall()
    return {bytes(sealed)[:8] for (sealed,) in rows}


def test_failed_destruction_is_reported_and_made_up_for(file, clock, tmp_path, monkeypatch):
    with open_memory(file, clock=clock) as memory:
        memory.add("Zyxomma flies.", user_id="alice", id="s")
        before = copy_to(file, tmp_path / "before")

        with monkeypatch.context() as patch:
            patch.setattr(Slots, "renew", fail_to_renew)
            with pytest.raises(StorageError, match="keys of what it erased still stand"):
                memory.delete("s", user_id="alice")
        assert memory.list(user_id="alice") == []
        memory.add("I like tea.", user_id="alice", id="tea")
        shutil.copy(key_file(file), key_file(before))
        with open_memory(before, clock=clock, accept_older=True) as restored:
            assert restored.list(user_id="alice") == []


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
    code = KILLED.replace('"s"', '"s3"')
    assert run_code(code, as_argument(file), "after the keys", "delete") == (-signal.SIGKILL, "")
    with open_memory(file, clock=clock) as memory:
        assert memory.list(user_id="alice") == []
