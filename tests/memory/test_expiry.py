"""How long memories live, and that nothing that is over is ever handed out."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.errors import HoldError, UnknownIdError, ValidationError
from meve.memory import GovernedMemory, Policy

CODE = "The code of the door is 4711."


def readings(memory, user="alice"):
    """How many memories each way of reading gives."""
    yield len(memory.search("What is the code of the door?", user_id=user, include_private=True).records)
    yield len(memory.list(user_id=user, include_archived=True))
    yield len(memory.export(user_id=user)["records"])
    yield len(memory.explain("the code of the door", user_id=user))
    yield len(memory.prompt("the code of the door?", user_id=user, include_private=True).recall.records)


@pytest.mark.parametrize(
    ("policy_class", "life"),
    [("factual", {"days": 30}), ("intent_bound", {"hours": 24}), ("ephemeral", {"hours": 6}), ("private", {"days": 7})],
)
def test_a_class_s_life_ends_to_the_second_without_maintenance(memory, clock, policy_class, life):
    memory.add(CODE, user_id="alice", source="doc", policy_class=policy_class, id="code")
    clock.advance(timedelta(**life) - timedelta(seconds=1))
    assert set(readings(memory)) == {1}
    clock.advance(timedelta(seconds=1))
    assert set(readings(memory)) == {0}
    with pytest.raises(UnknownIdError):
        memory.get("code", user_id="alice")


def test_canonical_memories_stay_and_turns_live_a_week_at_most(memory, clock):
    memory.add(CODE, user_id="alice", source="doc", policy_class="canonical", id="kept")
    memory.add(CODE, user_id="alice", source="chat_user", policy_class="canonical", id="turn")
    clock.advance(timedelta(days=7))
    assert [r.id for r in memory.list(user_id="alice")] == ["kept"]
    clock.advance(timedelta(days=10_000))
    assert [r.id for r in memory.list(user_id="alice")] == ["kept"]


def test_a_cached_recall_ends_with_its_memories(memory, clock):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    query = "What is the code of the door?"
    assert len(memory.search(query, user_id="alice").records) == 1
    clock.advance(timedelta(minutes=5))
    assert memory.search(query, user_id="alice").records == ()


def test_what_ends_while_the_search_runs_is_not_in_it(file, clock):
    """The clock is asked again before the result is handed over."""
    from meve.components.embedders import resolve_embedder

    class Slow:
        def __init__(self):
            self.inner = resolve_embedder("static")
            self.name, self.dimension, self.similarity = "slow", self.inner.dimension, self.inner.similarity

        def embed_query(self, text):
            clock.advance(timedelta(minutes=10))
            return self.inner.embed_query(text)

        def embed_passages(self, texts):
            return self.inner.embed_passages(texts)

    with GovernedMemory.open(file, clock=clock, embedder=Slow()) as memory:
        memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
        assert memory.search("What is the code of the door?", user_id="alice").records == ()


QUESTION = "What is the code of the door?"


def late(monkeypatch, clock, owner, name):
    """What takes ten minutes, as a wait for a lock or a language model may."""
    called = getattr(owner, name)

    def slow(*args, **how):
        clock.advance(timedelta(minutes=10))
        return called(*args, **how)

    monkeypatch.setattr(owner, name, slow)


@pytest.mark.parametrize("waited", ["writing", "version"])
def test_what_ends_while_the_file_is_waited_for_is_not_handed_out_from_a_cache_either(
    memory, clock, monkeypatch, waited
):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    assert memory.search(QUESTION, user_id="alice").records
    late(monkeypatch, clock, memory._runtime.store, waited)
    assert memory.search(QUESTION, user_id="alice").records == ()


def test_what_ends_while_older_turns_are_put_in_brief_is_not_in_the_prompt(memory, clock, monkeypatch):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    late(monkeypatch, clock, memory._runtime.summariser, "summarise")
    made = memory.prompt(QUESTION, user_id="alice", history=["Hello."] * 9)
    assert made.summary
    assert (made.facts, made.recall.records) == ("", ())


def test_ends_are_refused_that_can_not_be(memory, clock):
    for wrong, why in (
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(days=-1)}, "ttl"),
        ({"ttl": 60}, "ttl"),
        ({"expires_at": clock.now()}, "has passed"),
        ({"expires_at": datetime(2030, 1, 1)}, "time zone"),
        ({"expires_at": "2030-01-01"}, "datetime"),
        ({"ttl": timedelta(1), "expires_at": datetime(2030, 1, 1, tzinfo=UTC)}, "both"),
    ):
        with pytest.raises(ValidationError, match=why):
            memory.add(CODE, user_id="alice", **wrong)
    assert memory.list(user_id="alice") == []


def test_a_life_beyond_the_calendar_has_no_end(memory):
    assert memory.add(CODE, user_id="alice", ttl=timedelta.max).expires_at is None


def test_a_clock_that_goes_back_brings_nothing_back_that_maintenance_took(memory, clock):
    memory.add(CODE, user_id="alice", ttl=timedelta(minutes=5))
    clock.advance(timedelta(minutes=5))
    assert memory.maintain().counts()["expired"] == 1
    clock.advance(timedelta(minutes=-30))
    assert memory.list(user_id="alice") == []
    assert memory.audit.verify().ok


def test_the_id_of_an_expired_memory_is_free(memory, clock):
    memory.add(CODE, user_id="alice", id="code", ttl=timedelta(minutes=5))
    clock.advance(timedelta(minutes=5))
    assert memory.add("another", user_id="alice", id="code").text == "another"


def test_a_hold_beats_expiry_erasure_and_change(memory, clock):
    memory.add(CODE, user_id="alice", id="code", ttl=timedelta(minutes=5))
    memory.hold("code", user_id="alice", why="case 12")
    for call in (lambda: memory.update("code", user_id="alice", text="x"),):
        with pytest.raises(HoldError, match="case 12"):
            call()
    assert memory.delete("code", user_id="alice").held == {"code": "case 12"}
    assert memory.forget_user(user_id="alice").held == {"code": "case 12"}
    clock.advance(timedelta(days=1))
    assert memory.maintain().counts()["expired"] == 0
    assert memory.list(user_id="alice") == []  # kept, and not handed out
    memory.release("code", user_id="alice")
    assert memory.maintain().counts()["expired"] == 1


def test_a_policy_of_ones_own_decides(file, clock):
    policy = Policy.from_dict({"classes": {"factual": {"ttl": "2h"}}})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        made = memory.add(CODE, user_id="alice", source="doc", policy_class="factual")
        assert made.expires_at == clock.now() + timedelta(hours=2)


def test_what_is_over_is_not_handed_out_by_a_hold_either(memory, clock):
    """It can't be put on hold any more; one on hold can be released, and nobody sees its text."""
    memory.add(CODE, user_id="alice", id="late", ttl=timedelta(minutes=5))
    memory.add(CODE, user_id="alice", id="held", ttl=timedelta(minutes=5))
    memory.hold("held", user_id="alice")
    clock.advance(timedelta(minutes=5))
    with pytest.raises(UnknownIdError):
        memory.hold("late", user_id="alice")
    assert memory.release("held", user_id="alice") is None


def test_the_log_tells_that_an_expired_memory_made_room_for_another_of_its_id(memory, clock):
    memory.add(CODE, user_id="alice", id="code", ttl=timedelta(minutes=5))
    clock.advance(timedelta(minutes=5))
    memory.add("another", user_id="alice", id="code")
    assert [e.action for e in memory.audit.events(user_id="alice")] == ["add", "expire", "add"]


def test_a_conversation_s_memories_are_listed_without_what_is_over(memory, clock):
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


@pytest.mark.parametrize("whole", [False, True])
def test_a_dry_erasure_tells_what_goes_and_what_is_held_and_takes_nothing(memory, whole):
    memory.add(CODE, user_id="alice", id="origin", policy_class="canonical")
    memory.add(CODE, user_id="alice", id="made", derived_from=["origin"])
    memory.add(CODE, user_id="alice", id="held", derived_from=["origin"])
    memory.hold("held", user_id="alice", why="case 12")
    before, head = memory.list(user_id="alice"), memory.audit.head()

    def erased(**how):
        return memory.forget_user(user_id="alice", **how) if whole else memory.delete("made", user_id="alice", **how)

    dry = erased(dry_run=True)
    assert (memory.list(user_id="alice"), memory.audit.head()) == (before, head)
    assert dry == erased()
    assert dry.erased == (("made", "origin") if whole else ("made",))
