"""Notes of when memories were recalled, which are written to the records with a later change."""

from datetime import timedelta

from meve.memory import GovernedMemory
from meve.memory.stores import _record_store
from tests.memories import KEY, open_memory
from tests.memory import searching_child
from tests.warm_process import warm_process

QUESTION = "Where do I live?"


def touched(memory, record_id="home"):
    return memory.get(record_id, user_id="alice").touched_at


def test_recall_is_shown_at_once_and_written_with_the_next_change(memory, file, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as other:
        memory.search(QUESTION, user_id="alice")
        (listed,) = memory.list(user_id="alice")
        assert touched(memory) == listed.touched_at == clock.now()
        assert memory.export(user_id="alice")["records"][0]["touched_at"] == clock.now().isoformat()
        assert touched(other) is None
        assert [event.action for event in other.audit.events(user_id="alice")] == ["add", "retrieve"]
        memory.add("I like tea.", user_id="bob")
        assert touched(other) == clock.now()
        assert memory.audit.verify().ok


def test_recalls_are_written_once_they_are_many_and_when_the_memory_is_closed(file, clock, monkeypatch):
    monkeypatch.setattr(_record_store, "MOST", 1)
    with GovernedMemory.open(file, clock=clock) as memory, GovernedMemory.open(file, clock=clock) as other:
        memory.add("I live in Lyon.", user_id="alice", id="home")
        first = clock.now()
        memory.search(QUESTION, user_id="alice")
        assert touched(other) is None
        clock.advance(timedelta(days=1))
        memory.search(QUESTION, user_id="alice")
        assert (touched(other), touched(memory)) == (first, clock.now())
    with GovernedMemory.open(file, clock=clock) as memory:
        assert touched(memory) == clock.now()


def test_recalls_are_written_when_they_waited_for_an_hour(memory, file, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as other:
        written = []
        for _ in range(4):
            memory.search(QUESTION, user_id="alice")
            written.append(touched(other))
            clock.advance(timedelta(minutes=30))
        assert [at is None for at in written] == [True, True, True, False]
        assert written[-1] == clock.now() - timedelta(hours=1)


def test_later_recall_of_another_process_stays(memory, file, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as other:
        memory.search(QUESTION, user_id="alice")
        clock.advance(timedelta(days=1))
        other.search(QUESTION, user_id="alice")
    memory.add("I like tea.", user_id="alice")
    assert touched(memory) == clock.now()


def test_idle_memory_that_was_just_recalled_has_its_score_back(memory, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    fresh = memory.search(QUESTION, user_id="alice").passages[0].score
    clock.advance(timedelta(days=200))
    assert memory.search("Where is my home?", user_id="alice").passages[0].score < fresh
    assert memory.search(QUESTION, user_id="alice").passages[0].score == fresh


def test_notes_of_a_change_that_failed_are_kept_and_those_of_an_erased_memory_touch_no_other(memory, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    memory.search(QUESTION, user_id="alice")
    try:
        with memory._runtime.store.writing():
            raise KeyError
    except KeyError:
        assert touched(memory) == clock.now()
    memory.delete("home", user_id="alice")
    memory.add("I live in Oslo.", user_id="alice", id="home")
    assert touched(memory) is None


def test_killed_process_loses_no_entry_of_a_recall(file):
    with open_memory(file) as memory:
        for n in range(5):
            memory.add(f"I know the number {n}.", user_id="alice", id=str(n))
    with warm_process(searching_child.search, file) as (process, output):
        answered = [output.readline().split() for _ in range(20)]
        process.kill()
        process.join()
    with open_memory(file) as memory:
        logged = {(e.reason, e.record_id) for e in memory.audit.events(user_id="alice", action="retrieve")}
        assert {(f"recall {recall}", each) for recall, *ids in answered for each in ids} <= logged
        assert memory.audit.verify().ok
        assert len(memory.list(user_id="alice")) == 5
