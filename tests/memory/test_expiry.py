"""Lifetimes, and that no read returns an expired record."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import HoldError, UnknownIdError, ValidationError
from meve.memory import GovernedMemory, Policy
from tests.memories import HookedEmbedder

CODE = "The height of the door is 4711 mm."
QUESTION = "What is the height of the door?"


def count_by_reader(memory, user="alice"):
    """Yield the number of records that each read method returns."""
    yield len(memory.search(QUESTION, user_id=user, include_private=True).records)
    yield len(memory.list(user_id=user, include_archived=True, include_messages=True))
    yield len(memory.export(user_id=user)["records"])
    yield len(memory.explain("the height of the door", user_id=user))
    yield len(memory.prompt("the height of the door?", user_id=user, include_private=True).recall.records)


@pytest.mark.parametrize(
    ("policy_class", "ttl"),
    [("factual", {"days": 30}), ("intent_bound", {"hours": 24}), ("ephemeral", {"hours": 6}), ("private", {"days": 7})],
)
def test_record_expires_to_the_second_without_maintenance(memory, clock, policy_class, ttl):
    memory.add(CODE, user_id="alice", source="doc", policy_class=policy_class, id="code")
    clock.advance(timedelta(**ttl) - timedelta(seconds=1))
    assert set(count_by_reader(memory)) == {1}
    clock.advance(timedelta(seconds=1))
    assert set(count_by_reader(memory)) == {0}
    with pytest.raises(UnknownIdError):
        memory.get("code", user_id="alice")


def test_canonical_record_stays_and_canonical_turn_expires_after_a_week(paper_memory, clock):
    memory = paper_memory
    memory.add(CODE, user_id="alice", source="doc", policy_class="canonical", id="kept")
    memory.add(CODE, user_id="alice", source="chat_user", policy_class="canonical", id="turn")
    clock.advance(timedelta(days=7))
    assert [r.id for r in memory.list(user_id="alice")] == ["kept"]
    clock.advance(timedelta(days=10_000))
    assert [r.id for r in memory.list(user_id="alice")] == ["kept"]


def test_what_a_user_says_lasts_unless_the_policy_says_otherwise(file, clock):
    said = {"user_id": "alice", "id": "town"}
    with GovernedMemory.open(file, clock=clock) as memory:
        assert memory.add("I live in Lyon.", **said).expires_at is None
        clock.advance(timedelta(days=3_650))
        memory.maintain()
        assert [r.id for r in memory.search("Where do I live?", user_id="alice").records] == ["town"]
        memory.delete("town", user_id="alice")
    with GovernedMemory.open(file, clock=clock, policy=Policy.from_dict({"user_ttl": "2d"})) as memory:
        assert memory.add("I live in Lyon.", **said).expires_at == clock.now() + timedelta(days=2)


@pytest.mark.parametrize(
    ("source", "policy_class", "ttl", "published"),
    [
        ("chat_user", None, None, timedelta(hours=24)),
        ("chat_user", "factual", None, timedelta(days=7)),
        ("chat_user", "canonical", None, timedelta(days=7)),
        ("chat_user", "intent_bound", timedelta(hours=24), timedelta(hours=24)),
        ("chat_user", "ephemeral", timedelta(hours=6), timedelta(hours=6)),
        ("chat_user", "private", timedelta(days=7), timedelta(days=7)),
        ("chat_assistant", None, timedelta(hours=24), timedelta(hours=24)),
        ("chat_assistant", "factual", timedelta(days=7), timedelta(days=7)),
        ("doc", None, timedelta(days=30), timedelta(days=30)),
        ("doc", "canonical", None, None),
    ],
)
def test_life_of_each_source_and_class(tmp_path, clock, source, policy_class, ttl, published):
    for name, policy, life in (("default", None, ttl), ("paper", Policy.paper(), published)):
        with GovernedMemory.open(tmp_path / name, clock=clock, policy=policy) as memory:
            record = memory.add("Tomatoes need sun.", user_id="alice", source=source, policy_class=policy_class)
            assert record.expires_at == (None if life is None else clock.now() + life)


def test_cached_recall_omits_expired_record(memory, clock):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    assert len(memory.search(QUESTION, user_id="alice").records) == 1
    clock.advance(timedelta(minutes=5))
    assert memory.search(QUESTION, user_id="alice").records == ()


def test_record_expiring_during_the_search_is_not_returned(file, clock):
    embedder = HookedEmbedder(lambda: clock.advance(timedelta(minutes=10)))
    with GovernedMemory.open(file, clock=clock, embedder=embedder) as memory:
        memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
        assert memory.search(QUESTION, user_id="alice").records == ()


def delay(monkeypatch, clock, owner, name):
    """Make a method take ten minutes, as a lock or a language model may."""
    method = getattr(owner, name)

    def slow(*args, **options):
        clock.advance(timedelta(minutes=10))
        return method(*args, **options)

    monkeypatch.setattr(owner, name, slow)


@pytest.mark.parametrize("method", ["writing", "versions"])
def test_record_expiring_during_a_lock_wait_is_not_returned_from_the_cache(memory, clock, monkeypatch, method):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    assert memory.search(QUESTION, user_id="alice").records
    delay(monkeypatch, clock, memory._runtime.store, method)
    assert memory.search(QUESTION, user_id="alice").records == ()


def test_record_expiring_during_summarising_is_not_in_the_prompt(memory, clock, monkeypatch):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    delay(monkeypatch, clock, memory._runtime.summariser, "summarise")
    prompt = memory.prompt(QUESTION, user_id="alice", history=["Hello."] * 9)
    assert prompt.summary
    assert (prompt.facts, prompt.recall.records) == ("", ())


def test_invalid_ttl_or_expires_at_raises(memory, clock):
    for invalid, message in (
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(days=-1)}, "ttl"),
        ({"ttl": 60}, "ttl"),
        ({"expires_at": clock.now()}, "has passed"),
        ({"expires_at": datetime(2030, 1, 1)}, "time zone"),
        ({"expires_at": "2030-01-01"}, "datetime"),
        ({"expires_at": 5}, "datetime"),
        ({"ttl": timedelta(1), "expires_at": datetime(2030, 1, 1, tzinfo=UTC)}, "both"),
    ):
        with pytest.raises(ValidationError, match=message):
            memory.add(CODE, user_id="alice", **invalid)
    assert memory.list(user_id="alice") == []


def test_maximum_ttl_means_no_expiry(memory):
    assert memory.add(CODE, user_id="alice", ttl=timedelta.max).expires_at is None


def test_expired_record_stays_deleted_when_the_clock_goes_back(memory, clock):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    clock.advance(timedelta(minutes=5))
    assert memory.maintain().counts()["expired"] == 1
    clock.advance(timedelta(minutes=-30))
    assert memory.list(user_id="alice") == []
    assert memory.audit.verify().ok


def test_held_record_is_neither_changed_nor_erased(memory, clock):
    memory.add(CODE, user_id="alice", id="code", ttl=timedelta(minutes=5))
    memory.hold("code", user_id="alice", why="case 12")
    with pytest.raises(HoldError, match="case 12"):
        memory.update("code", user_id="alice", text="x")
    assert memory.delete("code", user_id="alice").held == {"code": "case 12"}
    assert memory.forget_user(user_id="alice").held == {"code": "case 12"}
    clock.advance(timedelta(days=1))
    assert memory.maintain().counts()["expired"] == 0
    assert memory.list(user_id="alice") == []  # kept, but not returned
    memory.release("code", user_id="alice")
    assert memory.maintain().counts()["expired"] == 1


def test_custom_policy_sets_the_ttl(file, clock):
    policy = Policy.from_dict({"classes": {"factual": {"ttl": "2h"}}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        record = memory.add(CODE, user_id="alice", source="doc", policy_class="factual")
        assert record.expires_at == clock.now() + timedelta(hours=2)


def test_hold_and_release_return_no_expired_record(memory, clock):
    """An expired record can't be held; a held one can be released, without returning its text."""
    memory.add(CODE, user_id="alice", id="late", ttl=timedelta(minutes=5))
    memory.add(CODE, user_id="alice", id="held", ttl=timedelta(minutes=5))
    memory.hold("held", user_id="alice")
    clock.advance(timedelta(minutes=5))
    with pytest.raises(UnknownIdError):
        memory.hold("late", user_id="alice")
    assert memory.release("held", user_id="alice") is None


def test_id_of_expired_record_can_be_reused_and_logs_the_expiry(memory, clock):
    memory.add(CODE, user_id="alice", id="code", ttl=timedelta(minutes=5))
    clock.advance(timedelta(minutes=5))
    assert memory.add("another", user_id="alice", id="code").text == "another"
    assert [e.action for e in memory.audit.events(user_id="alice")] == ["add", "expire", "add"]


def test_session_list_omits_expired_records(memory, clock):
    memory.add(CODE, user_id="alice", id="a", session_id="s1")
    memory.add(CODE, user_id="alice", id="b", session_id="s2")
    memory.add(CODE, user_id="alice", id="c")
    memory.add(CODE, user_id="alice", id="d", session_id="s1", ttl=timedelta(seconds=1))
    memory.add(CODE, user_id="bob", id="e", session_id="s1")
    assert [r.id for r in memory.list(user_id="alice", session_id="s1")] == ["a", "d"]
    clock.advance(timedelta(seconds=1))
    assert [r.id for r in memory.list(user_id="alice", session_id="s1")] == ["a"]
    assert [r.id for r in memory.list(user_id="alice")] == ["a", "b", "c"]
    with pytest.raises(ValidationError, match="session_id"):
        memory.list(user_id="alice", session_id=5)


@pytest.mark.parametrize("forget_all", [False, True])
def test_dry_run_reports_erased_and_held_and_changes_nothing(memory, forget_all):
    memory.add(CODE, user_id="alice", id="origin", policy_class="canonical")
    memory.add(CODE, user_id="alice", id="made", derived_from=["origin"])
    memory.add(CODE, user_id="alice", id="held", derived_from=["origin"])
    memory.hold("held", user_id="alice", why="case 12")
    before, head = memory.list(user_id="alice"), memory.audit.head()

    def erase(**options):
        if forget_all:
            return memory.forget_user(user_id="alice", **options)
        return memory.delete("made", user_id="alice", **options)

    dry = erase(dry_run=True)
    assert (memory.list(user_id="alice"), memory.audit.head()) == (before, head)
    assert dry == erase()
    assert dry.erased == (("made", "origin") if forget_all else ("made",))
