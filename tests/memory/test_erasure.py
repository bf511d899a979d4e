"""What is deleted is gone: not a byte of it is left in any file."""

import sqlite3
from datetime import timedelta

import numpy as np
import pytest

from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from tests.memories import archive

SENTINEL = "Zyxomma petiolatum flies at dusk."
WORD = "zyxomma"


def found_in(file, sought):
    """The files beside a memory's, itself included, that hold some bytes."""
    return [each.name for each in file.parent.iterdir() if sought.lower() in each.read_bytes().lower()]


def vector_of(memory, text=SENTINEL):
    return np.asarray(memory._runtime.embedder.embed_passages([text])[0], dtype="<f4").tobytes()[:64]


def archived(memory, clock):
    clock.advance(timedelta(days=400))
    memory.maintain()


@pytest.mark.parametrize("way", ["delete", "forget_user", "expire", "update", "archive"])
def test_no_byte_is_left_in_any_file(memory, file, clock, way):
    memory.add("Bread is baked.", user_id="alice", source="doc", policy_class="canonical")
    life = {"ttl": timedelta(hours=1)} if way == "expire" else {}
    memory.add(
        SENTINEL, user_id="alice", id="s", source="doc", policy_class="canonical", tags=[WORD], session_id=WORD,
        metadata={"about": WORD}, **life,
    )  # fmt: skip
    memory.search(SENTINEL, user_id="alice", limit=3)
    vector = vector_of(memory)
    with sqlite3.connect(file) as other:
        other.execute("SELECT 1")
    assert found_in(file, WORD.encode())
    assert any(vector in each.read_bytes() for each in file.parent.iterdir())
    if way == "delete":
        done = memory.delete("s", user_id="alice")
        assert (done.erased, done.scrubbed) == (("s",), True)
    elif way == "forget_user":
        memory.forget_user(user_id="alice")
    elif way == "expire":
        clock.advance(timedelta(hours=1))
        memory.maintain()
    elif way == "update":
        memory.update("s", user_id="alice", text="Another text.", tags=[], metadata={})
        memory.delete("s", user_id="alice")
    else:
        archive(memory, "s:alice", "s")
        memory.delete("s", user_id="alice")
    assert found_in(file, WORD.encode()) == []
    assert not any(vector in each.read_bytes() for each in file.parent.iterdir())
    assert memory.audit.verify().ok
    memory.close()
    assert found_in(file, WORD.encode()) == []


@pytest.mark.parametrize("changed", [{"metadata": {"note": "another"}}, {"tags": ["another"]}])
def test_so_are_metadata_and_tags(memory, file, changed):
    memory.add("Bread is baked.", user_id="alice", id="s", tags=[WORD], metadata={"note": WORD})
    memory.update("s", user_id="alice", tags=[], metadata={})
    memory.update("s", user_id="alice", **changed)
    assert found_in(file, WORD.lower().encode()) == found_in(file, WORD.encode()) == []


def test_a_text_that_was_changed_is_gone_from_every_file(memory, file):
    memory.add(SENTINEL, user_id="alice", id="s")
    memory.update("s", user_id="alice", text="Another text.")
    assert found_in(file, WORD.encode()) == []


def test_what_is_erased_is_gone_from_every_read_at_once_in_every_process(memory, file, clock):
    memory.add(SENTINEL, user_id="alice", id="s")
    with GovernedMemory.open(file, clock=clock, audit_key=b"a key of the tests, long enough") as other:
        assert len(other.search(SENTINEL, user_id="alice").records) == 1
        memory.delete("s", user_id="alice")
        assert other.search(SENTINEL, user_id="alice").records == ()
        with pytest.raises(UnknownIdError):
            other.get("s", user_id="alice")


@pytest.fixture
def reader(file, monkeypatch):
    """Somebody who reads an older state of the file, until told to leave."""
    monkeypatch.setattr("meve.memory.stores.sqlite._connections.SCRUB_SECONDS", 0.05)

    def reading():
        found = sqlite3.connect(file, isolation_level=None)
        found.execute("BEGIN")
        found.execute("SELECT count(*) FROM memories").fetchone()
        return found

    return reading


def test_another_reader_only_delays_the_scrubbing(memory, file, reader):
    """It is told, and maintenance sees to it."""
    memory.add(SENTINEL, user_id="alice", id="s")
    other = reader()
    assert memory.delete("s", user_id="alice").scrubbed is False
    assert memory.maintain().scrubbed is False
    other.close()
    assert memory.maintain().scrubbed is True
    assert found_in(file, WORD.encode()) == []


@pytest.mark.parametrize("way", ["delete", "update"])
def test_after_another_reader_the_next_write_scrubs(memory, file, reader, way):
    memory.add(SENTINEL, user_id="alice", id="s")
    other = reader()
    if way == "delete":
        assert memory.delete("s", user_id="alice").scrubbed is False
    else:
        memory.update("s", user_id="alice", text="Another text.")
    memory.add("Bread.", user_id="bob")
    assert found_in(file, WORD.encode())
    other.close()
    memory.search("bread", user_id="bob")  # its entry in the log is a write
    assert found_in(file, WORD.encode()) == []


def test_others_write_while_somebody_reads_long_and_something_was_erased(memory, file, clock, reader):
    """Nobody is told of a lock, and a writer waits as long as ever for another writer."""
    memory.add(SENTINEL, user_id="alice", id="s")
    other = reader()
    assert memory.delete("s", user_id="alice").scrubbed is False
    with GovernedMemory.open(file, clock=clock, audit_key=b"a key of the tests, long enough") as beside:
        beside.add("Bread.", user_id="bob")
    writer = memory._runtime.store.backend._connections._writer
    assert writer.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    other.close()


def test_where_the_disk_has_no_room_to_scrub_it_is_owed_and_what_was_erased_stays_erased(tmp_path):
    """The log file is small, and what it is written back to may not grow."""
    import subprocess
    import sys

    code = f"""
import resource
from meve.memory import GovernedMemory
from tests.memories import archive
from meve.testing.fakes import WordCounter, WordEmbedder
memory = GovernedMemory.open({str(tmp_path / "memory.db")!r}, embedder=WordEmbedder(), tokens=WordCounter())
for n in range(40):
    memory.add(f"fact {{n}} " * 500, user_id="alice", id=f"n{{n}}")
resource.setrlimit(resource.RLIMIT_FSIZE, (4_096 * 12, resource.RLIM_INFINITY))
print(memory._kit.store.scrub())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(memory.delete("n1", user_id="alice").scrubbed, len(memory.list(user_id="alice")), memory.audit.verify().ok)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["False", "True 39 True"], done.stderr


def test_the_log_tells_of_the_erasure_and_holds_nothing_of_the_content(memory):
    memory.add(SENTINEL, user_id="alice", id="s", reason="told in a chat")
    memory.search(f"what is {WORD}?", user_id="alice")
    memory.delete("s", user_id="alice", reason="the user asked")
    events = memory.audit.events(user_id="alice", action="delete", since=timedelta(days=30))
    assert [(e.record_id, e.reason) for e in events] == [("s", "the user asked")]
    assert WORD not in str([e.to_dict() for e in memory.audit.events()]).lower()


def test_two_equal_texts_are_told_alike_and_only_with_the_key(memory):
    """A keyed hash recognises a content, and can't be guessed without the key."""
    from meve.memory._audit.chain import AuditChain

    one = memory.add(SENTINEL, user_id="alice")
    memory.add(SENTINEL, user_id="bob")
    hashes = {e.detail["content"] for e in memory.audit.events(action="add")}
    assert len(hashes) == 1
    assert hashes != {AuditChain().hash_content(one.text)}


def test_without_a_key_the_log_holds_nothing_that_a_content_could_be_guessed_by(file):
    """A bare hash of a code of four digits is the code: ten thousand tries tell it."""
    from meve.memory._audit.chain import AuditChain

    with GovernedMemory.open(file) as memory:
        memory.add("My code is 4711.", user_id="alice", id="s")
        memory.search("Is my code 4711?", user_id="alice")
        memory.delete("s", user_id="alice")
        told = str([e.to_dict() for e in memory.audit.events()])
        assert not any(AuditChain().hash_content(text) in told for text in ("My code is 4711.", "Is my code 4711?"))
        assert "factual" in told or "intent_bound" in told


def test_what_was_merged_is_erased_under_either_id(memory, clock):
    for n in range(2):
        memory.add(SENTINEL, user_id="alice", id=f"s{n}", source="doc", policy_class="factual")
    memory.maintain()
    (left,) = memory.list(user_id="alice")
    gone = {"s0", "s1"} - {left.id}
    assert set(left.derived_from) == gone
    assert memory.delete(gone.pop(), user_id="alice").erased == (left.id,)


def test_forgetting_one_user_leaves_every_other_s_bytes_alone(memory):
    memory.add(SENTINEL, user_id="alice")
    kept = memory.add("Mine.", user_id="bob")
    memory.forget_user(user_id="alice")
    assert memory.list(user_id="bob") == [kept]
