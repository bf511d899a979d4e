"""The audit log: altered, missing and reordered entries are found and located."""

import json
from datetime import timedelta

import pytest

from meve.errors import AuditError, StorageError
from meve.memory import GovernedMemory
from meve.memory._audit.chain import encode_detail
from tests.memories import KEY, add_with_score, run_sql


@pytest.fixture
def filled(file, clock):
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        for n in range(6):
            memory.add(f"Fact {n}.", user_id="alice", id=f"f{n}")
        memory.delete("f2", user_id="alice", reason="asked")
        head = memory.audit.head()
    return file, head


@pytest.mark.parametrize(
    ("statements", "position"),
    [
        (["UPDATE audit SET reason = 'other' WHERE seq = 3"], 3),
        (["UPDATE audit SET at = at + 1 WHERE seq = 5"], 5),
        (["UPDATE audit SET user = 's:bob' WHERE seq = 1"], 1),
        (["UPDATE audit SET detail = '{}' WHERE seq = 7"], 7),
        (["DELETE FROM audit WHERE seq = 4"], 4),
        (["DELETE FROM audit WHERE seq = 7"], 7),
        (["DELETE FROM audit"], 1),
        (["UPDATE audit SET seq = 99 WHERE seq = 2", "UPDATE audit SET seq = 2 WHERE seq = 3",
          "UPDATE audit SET seq = 3 WHERE seq = 99"], 2),
        (["DELETE FROM audit WHERE seq = 7", "UPDATE audit_head SET seq = 6, digest = (SELECT digest FROM audit WHERE "
          "seq = 6)"], 7),
        (["UPDATE audit_head SET seq = 9"], 8),
        (["DELETE FROM audit_head"], 1),
        (["UPDATE audit SET reason = CAST(x'ff' AS TEXT) WHERE seq = 3"], 3),  # bytes that are no text
        (["UPDATE audit SET user = CAST(x'f0' AS TEXT) WHERE seq = 1"], 1),
        (["UPDATE audit SET at = 9223372036854775807 WHERE seq = 4"], 4),
        (["UPDATE audit SET seq = -5 WHERE seq = 2"], 1),
        (["UPDATE audit_head SET digest = x''"], 8),
        (["INSERT INTO audit SELECT 99, at, user, record, action, reason, detail, digest FROM audit WHERE seq = 1"], 8),
    ],
)  # fmt: skip
def test_tampered_log_fails_at_the_right_entry(filled, statements, position):
    file, _ = filled
    run_sql(file, *statements)
    with GovernedMemory.open(file, audit_key=KEY) as memory:
        result = memory.audit.verify()
    assert (result.ok, result.broken_at, result.keyed) == (False, position, True)
    assert result.problem


@pytest.mark.parametrize(
    "change", ["detail = 'x'", "at = 9223372036854775807", "user = 'i:x'", "reason = CAST(x'ff' AS TEXT)"]
)
def test_unreadable_entry_raises_our_error(filled, change):
    file, _ = filled
    run_sql(file, f"UPDATE audit SET {change} WHERE seq = 3")
    with GovernedMemory.open(file, audit_key=KEY) as memory:
        with pytest.raises((AuditError, StorageError), match=r"audit log|can't be read"):
            memory.audit.events()
        assert memory.audit.verify().broken_at == 3


def test_restored_older_file_fails_against_a_kept_head(file, clock, tmp_path):
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        memory.add("One.", user_id="alice")
    keys = file.with_name("memory.db.keys")
    older = file.read_bytes(), keys.read_bytes()  # with the old keys, the files alone seem intact
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        memory.add("Two.", user_id="alice")
        head = memory.audit.head()
    file.write_bytes(older[0])
    keys.write_bytes(older[1])
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        assert memory.audit.verify().ok
        result = memory.audit.verify(head)
        assert (result.ok, result.broken_at) == (False, 2)


def test_intact_log_passes_against_its_own_heads(filled):
    file, head = filled
    with GovernedMemory.open(file, audit_key=KEY) as memory:
        memory.add("More.", user_id="bob")
        assert memory.audit.verify().ok
        assert memory.audit.verify(head).ok
        assert memory.audit.verify().events == 8


@pytest.mark.parametrize("key", [None, b"another key that is long enough"])
def test_wrong_key_raises_on_open(filled, key):
    with pytest.raises(AuditError, match="is signed with"):
        GovernedMemory.open(filled[0], audit_key=key)


def test_log_without_key_detects_accidents(file):
    with GovernedMemory.open(file) as memory:
        memory.add("One.", user_id="alice")
    run_sql(file, "UPDATE audit SET reason = 'x'")
    with GovernedMemory.open(file) as memory:
        result = memory.audit.verify()
        assert (result.ok, result.keyed) == (False, False)


def test_failing_log_entry_rolls_back_the_change(memory, monkeypatch):
    monkeypatch.setattr(type(memory._runtime.chain), "digest", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        memory.add("One.", user_id="alice")
    monkeypatch.undo()
    assert memory.list(user_id="alice") == []
    assert memory.audit.verify().events == 0


def test_log_contains_reasons_for_additions_expiry_and_use(memory, clock):
    memory.add("Tomatoes need sun.", user_id="alice", id="t", source="doc", reason="a manual was read")
    memory.add("Old news.", user_id="alice", id="old", ttl=timedelta(days=1))
    recall = memory.search("What do tomatoes need?", user_id="alice")
    memory.reflect(recall, answer="Tomatoes need sun.")
    clock.advance(timedelta(days=2))
    memory.maintain()
    (about,) = memory.explain("tomatoes", user_id="alice")
    assert "a manual was read" in about.why
    gone = memory.audit.events(user_id="alice", action=["delete", "expire", "prune"], since=timedelta(days=30))
    assert [(e.record_id, e.action) for e in gone] == [("old", "expire")]
    assert "expired at" in gone[0].reason
    used = memory.audit.events(user_id="alice", action="use")
    assert [e.record_id for e in used] == ["t"]
    assert recall.id in used[0].reason


def test_events_filters_by_user_record_action_and_time(memory, clock):
    memory.add("One.", user_id="alice", id="a")
    clock.advance(timedelta(days=40))
    memory.add("Two.", user_id="bob", id="b")
    assert [e.record_id for e in memory.audit.events(since=timedelta(days=30))] == ["b"]
    assert [e.record_id for e in memory.audit.events(user_id="alice")] == ["a"]
    assert [e.user_id for e in memory.audit.events(record_id="b", action="add")] == ["bob"]
    assert memory.audit.events(until=clock.now() - timedelta(days=50)) == []


def test_explain_includes_archived_memories_on_request(paper_memory, clock):
    memory = paper_memory
    add_with_score(memory, 20, text="Tomatoes need six hours of sun.", id="sun", source="doc", ttl=timedelta(days=900))
    clock.advance(timedelta(days=60))
    assert memory.maintain().archived == {"alice": ["sun"]}
    memory.add("Tomatoes are red.", user_id="alice", id="red", source="doc")
    assert [e.record.id for e in memory.explain("tomatoes need sun", user_id="alice")] == ["red"]
    result = memory.explain("tomatoes need sun", user_id="alice", include_archived=True)
    assert {e.record.id: e.archived for e in result} == {"sun": True, "red": False}
    assert [e.score for e in result] == sorted((e.score for e in result), reverse=True)
    (sun,) = (e for e in result if e.archived)
    assert sun.why.endswith("; archived")
    assert (sun.events[0].action, sun.events[-1].action) == ("add", "archive")
    assert len(memory.explain("tomatoes", user_id="alice", include_archived=True, limit=1)) == 1
    assert memory.explain("tomatoes need sun", user_id="bob", include_archived=True) == []
    clock.advance(timedelta(days=900))
    assert memory.explain("tomatoes need sun", user_id="alice", include_archived=True) == []


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"score": 0.1234, "class": "fact", "query": 'é"\\ \n\u2028'},
        {"b": 1e-30, "a": -0.0, "ä": 1e16, "c": 12.0},
        {"n": 3, "flag": True, "none": None, "by": {"z": 1.5, "a": "x"}, "list": [1, "b"]},
    ],
)
def test_detail_is_written_as_json_with_its_names_in_order(detail):
    assert encode_detail(detail) == json.dumps(detail, sort_keys=True, separators=(",", ":"))


def test_detail_of_no_finite_number_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_detail({"class": "fact", "score": float("nan")})
