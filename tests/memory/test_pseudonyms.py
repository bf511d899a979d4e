"""With `audit.pseudonyms`, new entries of the log hold a keyed hash of the user's id, and are found by the id."""

from datetime import timedelta

import pytest

from meve.errors import AuditError
from meve.memory import Policy, Turn, record_turns
from meve.memory.stores.protocol import EventQuery
from meve.testing.dict_memory_store import DictMemoryStore
from tests.memories import change_sealed, open_memory, open_store, run_sql

PSEUDONYMS = Policy.from_dict({"audit": {"pseudonyms": True}})


@pytest.fixture(params=["sqlite", "dict"])
def memory(request, file, clock):
    store = open_store(file) if request.param == "sqlite" else DictMemoryStore()
    with open_memory(None, store=store, clock=clock, policy=PSEUDONYMS) as opened:
        yield opened


def logged_users(memory):
    with memory._runtime.store.backend.reading() as snapshot:
        return {entry.user for entry in snapshot.entries(EventQuery())}


def test_log_holds_no_user_id_and_each_user_has_a_pseudonym(memory):
    for user in ("anna@example.org", 4711, "4711"):
        memory.add("I live in Lyon.", user_id=user)
    memory.add_shared("The office opens at 9.")
    users = logged_users(memory)
    assert len(users) == 4
    assert "" in users
    assert not any("anna" in user or "4711" in user for user in users)
    assert {str(e.user_id)[:2] for e in memory.audit.events()} == {"h:", "No"}


def test_reads_by_user_id_find_and_name_the_user(memory, clock):
    memory.add("I live in Lyon.", user_id="alice", id="home")
    memory.add("I live in Rome.", user_id="bob", id="rome")
    recall = memory.search("Where do I live?", user_id="alice")
    memory.reflect(recall, answer="In Lyon.")
    clock.advance(timedelta(days=1))
    memory.delete("home", user_id="alice")
    events = memory.audit.events(user_id="alice")
    assert {(e.user_id, e.record_id) for e in events} == {("alice", "home")}
    assert (events[0].action, events[-1].action) == ("add", "delete")
    assert [e.action for e in memory.audit.events(user_id="alice", since=timedelta(hours=1))] == ["delete"]
    assert [e.action for e in memory.audit.events(user_id="alice", record_id="home", action="add")] == ["add"]
    assert memory.audit.verify().ok


def test_export_and_explanation_contain_the_users_entries(memory):
    memory.add("I live in Lyon.", user_id="alice", id="home", reason="asked for")
    (entry,) = memory.export(user_id="alice")["audit"]
    assert (entry["user_id"], entry["record_id"], entry["action"]) == ("alice", "home", "add")
    assert memory.export(user_id="bob")["audit"] == []
    (explanation,) = memory.explain("Where do I live?", user_id="alice")
    assert "asked for" in explanation.why


def test_erased_turn_is_not_recorded_again(memory):
    turns = [Turn(id="m1", speaker="user", text="I moved to Oslo.")]
    (record,) = record_turns(memory, turns, user_id="alice", session_id="s1").added
    memory.delete(record.id, user_id="alice")
    assert record_turns(memory, turns, user_id="alice", session_id="s1").added == ()


def test_log_begun_without_pseudonyms_is_read_and_verified_whole(file, clock):
    for policy, record_id in ((None, "a"), (PSEUDONYMS, "b"), (None, "c")):
        with open_memory(file, clock=clock, policy=policy) as memory:
            memory.add("I live in Lyon.", user_id="alice", id=record_id)
            memory.update("a", user_id="alice", tags=[record_id])
    with open_memory(file, clock=clock) as memory:
        assert [e.record_id for e in memory.audit.events(user_id="alice")] == ["a", "a", "b", "a", "c", "a"]
        assert {e.user_id for e in memory.audit.events(user_id="alice")} == {"alice"}
        result = memory.audit.verify()
        assert (result.ok, result.records) == (True, 3)


def test_changed_record_is_named_with_its_user(file, clock):
    with open_memory(file, clock=clock, policy=PSEUDONYMS) as memory:
        memory.add("I live in Lyon.", user_id="alice", id="home")
        memory.add("I live in Rome.", user_id="alice", id="rome")
    change_sealed(file, "alice", "home", text="x")
    run_sql(file, "DELETE FROM memories WHERE id = {alice/rome}")
    with open_memory(file, clock=clock) as memory:
        differences = memory.audit.verify().differences
    assert [(e.user_id, e.record_id, e.differs) for e in differences] == [
        ("alice", "home", ("text",)),
        ("alice", "rome", ("missing",)),
    ]


def test_pseudonyms_without_a_key_raise(file):
    with pytest.raises(AuditError, match=r"audit\.pseudonyms of the policy needs an audit_key"):
        open_memory(file, policy=PSEUDONYMS, audit_key=None)
