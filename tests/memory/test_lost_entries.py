"""Test that `verify` notes entries of the log that were written and are gone, without a head or checkpoint."""

import shutil
import signal
from contextlib import closing

import pytest

from tests.memories import open_memory, open_store
from tests.warm_process import run_code

FILES = ("memory.db", "memory.db.keys", "memory.db-wal", "memory.db-shm")


def add(file, *names):
    with open_memory(file) as memory:
        for name in names:
            memory.add(f"Fact {name}.", user_id="ann", id=name, source="doc")


def lose_wal(file, *names):
    """Add records in a process that is killed before SQLite moves them into the database, and delete its WAL."""
    (copy := file.parent / "copy").mkdir(exist_ok=True)
    code = f"""
import os, signal
from tests.memories import open_memory
memory = open_memory({str(file)!r})
for name in {names!r}:
    memory.add(f"Fact {{name}}.", user_id="ann", id=name, source="doc")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_code(code) == (-signal.SIGKILL, "")
    for name in FILES:
        shutil.copy(file.with_name(name), copy)
    assert verify(copy / file.name).events == len(names) + 1  # a kill alone loses nothing
    for name in FILES[2:]:
        file.with_name(name).unlink()


def verify(file, **options):
    with open_memory(file, **options) as memory:
        return memory.audit.verify()


@pytest.mark.parametrize("key", [None, b"a key of the tests, long enough"])
def test_lost_write_ahead_log_is_noted(file, key):
    with open_memory(file, audit_key=key) as memory:
        memory.add("Fact one.", user_id="ann", id="one", source="doc")
    with closing(open_memory(file, audit_key=key)) as memory:
        memory.add("Fact two.", user_id="ann", id="two", source="doc")
        memory.add("Fact three.", user_id="ann", id="three", source="doc")
        lost = file.parent / "lost"
        lost.mkdir()
        for name in FILES[:2]:
            shutil.copy(file.with_name(name), lost)  # without the WAL
    result = verify(lost / file.name, audit_key=key)
    assert (result.ok, result.events, result.broken_at) == (False, 1, 2)
    assert result.problem == (
        "the log has 1 entries, and 3 were written: the write-ahead log was lost, or an older copy of the file put back"
    )


def test_lost_write_ahead_log_of_a_killed_process_is_noted_for_good(file):
    add(file, "one")
    lose_wal(file, "two", "three")
    add(file, "four", "five", "six")  # as many as there were, and more
    result = verify(file)
    assert (result.ok, result.events, result.broken_at) == (False, 1, 2)
    assert result.problem == (
        "entries 2 to 3 were lost, and others written in their place: the write-ahead log was lost, or an older copy "
        "of the file put back"
    )
    older = file.read_bytes()
    add(file, "seven")
    file.write_bytes(older)
    assert verify(file).broken_at == 2


def test_older_copy_beside_newer_keys_is_noted(file):
    add(file, "one")
    older = file.read_bytes()
    add(file, "two")
    file.write_bytes(older)
    assert verify(file).broken_at == 2


def test_accepted_older_copy_is_intact_again(file):
    add(file, "one")
    older = file.read_bytes()
    add(file, "two")
    file.write_bytes(older)
    assert verify(file, accept_older=True).ok
    add(file, "three")
    assert verify(file).ok
    older = file.read_bytes()
    add(file, "four")
    file.write_bytes(older)
    add(file, "five")
    assert not verify(file).ok
    assert verify(file, accept_older=True).ok
    assert verify(file).ok


def test_change_that_was_rolled_back_is_no_loss(file, monkeypatch):
    with open_memory(file) as memory:
        memory.add("Fact one.", user_id="ann", source="doc")
        monkeypatch.setattr(type(memory._runtime.chain), "digest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            memory.add("Fact two.", user_id="ann", source="doc")
        monkeypatch.undo()
        assert memory.audit.verify().ok


def test_write_during_verification_is_no_loss(file):
    """A writer goes on between the moments at which the two files are read."""
    with open_memory(file) as memory, open_memory(file) as other:
        memory.add("Fact one.", user_id="ann", source="doc")
        entries = memory._runtime.chain.verify

        def late(*arguments):
            other.add("Fact two.", user_id="ann", source="doc")
            return entries(*arguments)

        object.__setattr__(memory._runtime.chain, "verify", late)
        assert memory.audit.verify().ok


def test_unreadable_note_of_a_loss_fails(file):
    add(file, "one")
    with closing(open_store(file)) as store, store.writing() as transaction:
        transaction.put_setting("lost_entries", "x")
    result = verify(file)
    assert not result.ok
