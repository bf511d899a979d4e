"""Erasure leaves no byte of the content in any file."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import numpy as np
import pytest

from meve.errors import UnknownIdError
from meve.memory import GovernedMemory
from meve.memory._audit.chain import AuditChain
from meve.memory.records import user_key
from meve.memory.stores.protocol import RecordQuery
from tests.memories import KEY, archive

SENTINEL = "Zyxomma petiolatum flies at dusk."
WORD = "zyxomma"


def files_containing(file, content):
    """Return the names of the files in the memory's folder that contain these bytes."""
    return [path.name for path in file.parent.iterdir() if content.lower() in path.read_bytes().lower()]


def embed_bytes(memory, text=SENTINEL):
    return np.asarray(memory._runtime.embedder.embed_passages([text])[0], dtype="<f4").tobytes()[:64]


@pytest.mark.parametrize("way", ["delete", "forget_user", "expire", "update", "archive"])
def test_erased_record_leaves_no_byte_in_any_file(memory, file, clock, way):
    memory.add("Bread is baked.", user_id="alice", source="doc", policy_class="canonical")
    ttl = {"ttl": timedelta(hours=1)} if way == "expire" else {}
    memory.add(
        SENTINEL, user_id="alice", id="s", source="doc", policy_class="canonical", tags=[WORD], session_id=WORD,
        metadata={"about": WORD}, **ttl,
    )  # fmt: skip
    memory.search(SENTINEL, user_id="alice", limit=3)
    vector = embed_bytes(memory)
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("SELECT 1")
    if way == "delete":
        assert memory.delete("s", user_id="alice").erased == ("s",)
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
    assert files_containing(file, WORD.encode()) == []
    assert not any(vector in each.read_bytes() for each in file.parent.iterdir())
    assert memory.audit.verify().ok
    memory.close()
    assert files_containing(file, WORD.encode()) == []


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        ({"text": SENTINEL}, {"text": "Another text."}),
        ({"text": "Bread.", "metadata": {"note": WORD}}, {"metadata": {"note": "another"}}),
        ({"text": "Bread.", "tags": [WORD]}, {"tags": ["another"]}),
    ],
)
def test_replaced_text_metadata_or_tags_leave_no_byte(memory, file, before, changed):
    memory.add(**before, user_id="alice", id="s")
    memory.update("s", user_id="alice", **changed)
    assert files_containing(file, WORD.encode()) == []


def test_erased_record_is_gone_from_another_connection_at_once(memory, file, clock):
    memory.add(SENTINEL, user_id="alice", id="s")
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as other:
        assert len(other.search(SENTINEL, user_id="alice").records) == 1
        memory.delete("s", user_id="alice")
        assert other.search(SENTINEL, user_id="alice").records == ()
        with pytest.raises(UnknownIdError):
            other.get("s", user_id="alice")


def test_reader_of_an_older_state_delays_no_erasure(memory, file):
    memory.add(SENTINEL, user_id="alice", id="s")
    reader = sqlite3.connect(file, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    with memory._runtime.store.backend.reading() as snapshot:
        query = RecordQuery(user="s:alice")
        assert snapshot.count(query) == 1
        memory.delete("s", user_id="alice")
        assert snapshot.records(query) == []
    assert files_containing(file, WORD.encode()) == []
    reader.close()


def test_log_records_the_erasure_without_the_content(memory):
    memory.add(SENTINEL, user_id="alice", id="s", reason="told in a chat")
    memory.search(f"what is {WORD}?", user_id="alice")
    memory.delete("s", user_id="alice", reason="the user asked")
    events = memory.audit.events(user_id="alice", action="delete", since=timedelta(days=30))
    assert [(e.record_id, e.reason) for e in events] == [("s", "the user asked")]
    assert WORD not in str([e.to_dict() for e in memory.audit.events()]).lower()


def test_equal_texts_of_one_user_alone_have_equal_keyed_hashes(memory):
    """Otherwise whoever may write as another user could test guesses of an erased text against the log."""
    for user_id in ("alice", "alice", "bob"):
        memory.add(SENTINEL, user_id=user_id)
    first, second, others = (e.detail["content"] for e in memory.audit.events(action="add"))
    assert first == second != others
    assert first not in {AuditChain().hash_content(SENTINEL, user) for user in ("", user_key("alice"))}


def test_queries_of_two_users_have_different_keyed_hashes(memory):
    for user_id in ("alice", "bob"):
        memory.add(SENTINEL, user_id=user_id)
        memory.search("what is it?", user_id=user_id)
    assert len({e.detail["query"] for e in memory.audit.events(action="retrieve")}) == 2


def test_log_without_key_contains_no_content_hash(file):
    """An unkeyed hash of a four-digit code can be guessed by trying all codes."""
    with GovernedMemory.open(file) as memory:
        memory.add("My code is 4711.", user_id="alice", id="s")
        memory.search("Is my code 4711?", user_id="alice")
        memory.delete("s", user_id="alice")
        events = str([e.to_dict() for e in memory.audit.events()])
        hashes = [AuditChain().hash_content(t, user_key("alice")) for t in ("My code is 4711.", "Is my code 4711?")]
        assert not any(each in events for each in hashes)
        assert "private" in events


def test_merged_record_is_erased_by_either_id(memory, clock):
    for n in range(2):
        memory.add(SENTINEL, user_id="alice", id=f"s{n}", source="doc", policy_class="factual")
    memory.maintain()
    (left,) = memory.list(user_id="alice")
    merged_ids = {"s0", "s1"} - {left.id}
    assert set(left.derived_from) == merged_ids
    assert memory.delete(merged_ids.pop(), user_id="alice").erased == ("s0", "s1")


def test_forget_user_keeps_records_of_other_users(memory):
    memory.add(SENTINEL, user_id="alice")
    kept = memory.add("Mine.", user_id="bob")
    memory.forget_user(user_id="alice")
    assert memory.list(user_id="bob") == [kept]


def test_forget_of_an_unknown_user_or_session_finds_nothing(memory):
    memory.add(SENTINEL, user_id="alice", session_id="s1")
    memory.add(SENTINEL, user_id=5)
    for dry_run in (True, False):
        unknown = memory.forget_user(user_id="nobody", dry_run=dry_run)
        assert (unknown.found, unknown.other_user, unknown.erased) == (False, None, ())
        other_type = memory.forget_user(user_id="5", dry_run=dry_run)
        assert (other_type.found, other_type.other_user, other_type.erased) == (False, 5, ())
    assert not memory.forget_session("s9", user_id="alice").found
    assert memory.forget_session("s1", user_id="alice").found
    assert memory.forget_user(user_id=5).found
    assert not memory.forget_user(user_id=5).found


def test_user_with_a_score_of_a_shared_record_is_found(memory):
    memory.add_shared(SENTINEL, id="shared")
    recall = memory.search("When does Zyxomma petiolatum fly?", user_id="alice")
    memory.reflect(recall, answer=SENTINEL)
    assert memory.forget_user(user_id="alice").found
    assert not memory.forget_user(user_id="alice").found
