"""Turns with a time: what is recorded of them was told then, not when it was written."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import ClassVar

import pytest

from meve.conversation import Turn
from meve.errors import PolicyError, ValidationError
from meve.memory import GovernedMemory, Policy, UpdateVerdict
from meve.memory._write.extraction import FactDecision
from meve.memory.turns import TurnRules, add_turns, record_turns
from tests.memories import KEY, FixedExtractor

JANUARY = datetime(2026, 1, 10, 9, 30, tzinfo=UTC)


def tell(memory, text, at, session="s1", **options):
    turn = Turn(speaker="user", text=text, time=at)
    return record_turns(memory, [turn], user_id="ann", session_id=session, **options)


def find(memory, question="Where do I live?", **options):
    return [r.text for r in memory.search(question, user_id="ann", **options).records]


def test_fact_of_a_dated_turn_was_told_then_and_is_logged_now(memory, clock):
    [record] = tell(memory, "I live in Lyon.", JANUARY).added
    assert (record.created_at, record.valid_from) == (JANUARY, JANUARY)
    assert "2026-01-10" in memory.search("Where do I live?", user_id="ann").text
    assert {event.at for event in memory.audit.events(record_id=record.id)} == {clock.now()}
    assert memory.audit.verify().ok
    assert "added 2026-05-01 12:00:00 UTC (said in a conversation), told 2026-01-10 09:30:00 UTC" in (
        memory.explain_record(record.id, user_id="ann").why
    )


def test_periods_and_moments_follow_the_telling(memory, clock):
    tell(memory, "I live in Lyon.", JANUARY)
    tell(memory, "I hiked to the lake.", clock.now() - timedelta(days=5))
    assert find(memory, since=JANUARY + timedelta(days=1)) == ["I hiked to the lake."]
    assert find(memory, until=JANUARY + timedelta(days=1)) == ["I live in Lyon."]
    assert find(memory, "What did I do last week?", max_tokens=60)[0] == "I hiked to the lake."
    assert find(memory, as_of=JANUARY - timedelta(days=1)) == []
    assert find(memory, as_of=JANUARY + timedelta(days=1)) == ["I live in Lyon."]


@pytest.mark.parametrize("late", [False, True], ids=["in order", "the oldest last"])
def test_the_statement_told_last_holds_in_whichever_order_they_are_recorded(memory, late):
    told = [("I live in Lyon.", JANUARY), ("I live in Oslo.", JANUARY + timedelta(days=30))]
    for text, at in reversed(told) if late else told:
        tell(memory, text, at)
    memory.maintain()
    assert find(memory) == ["I live in Oslo."]
    assert find(memory, as_of=JANUARY + timedelta(days=20)) == ["I live in Lyon."]
    assert find(memory, as_of=JANUARY + timedelta(days=40)) == ["I live in Oslo."]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_of_turns_of_one_day_the_one_recorded_last_is_the_newer(memory, names):
    """Of turns whose time is a date, the order of recording counts, not that of their ids."""
    for name, hour, source in zip(names, (9, 10), ("chat_assistant", "chat_user"), strict=True):
        told = {"created_at": JANUARY, "source": source, "policy_class": "factual", "ttl": timedelta(days=900)}
        memory.add(f"The shop opens at {hour} on weekdays.", user_id="ann", id=name, **told)
    newer, question = ["The shop opens at 10 on weekdays."], "When does the shop open on weekdays?"
    assert find(memory, question) == newer, "a search compares the two"
    memory.maintain()
    assert find(memory, question) == newer
    assert find(memory, question, as_of=JANUARY + timedelta(days=1)) == newer
    assert memory.get(names[0], user_id="ann").valid_to == JANUARY, "it held at no moment"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_judge_sees_of_turns_of_one_day_the_one_recorded_first_as_the_older(file, clock, names):
    class Recorder:
        pairs: ClassVar = []

        def judge(self, older, newer):
            self.pairs.append((older, newer))
            return UpdateVerdict(relation="different")

    with GovernedMemory.open(file, clock=clock, updates=(judge := Recorder())) as memory:
        for name, city in zip(names, ("Lyon", "Oslo"), strict=True):
            memory.add(f"I live in {city}.", user_id="ann", id=name, created_at=JANUARY)
        judge.pairs.clear()
        memory.maintain()
    assert judge.pairs == [("I live in Lyon.", "I live in Oslo.")]


def test_a_date_is_its_noon_in_utc_or_now(memory, clock):
    for day, told in (
        (date(2026, 1, 10), datetime(2026, 1, 10, 12, tzinfo=UTC)),
        ("2026-01-11", datetime(2026, 1, 11, 12, tzinfo=UTC)),
        ("2026-01-12T08:00:00+02:00", datetime(2026, 1, 12, 6, tzinfo=UTC)),
        (clock.now().date() + timedelta(days=1), clock.now()),  # where a day begins earlier than in UTC
    ):
        [record] = tell(memory, f"I met {day} people.", day).added
        assert record.created_at == told


def test_days_are_those_of_the_turns_own_time_zone(memory):
    evening = datetime(2026, 1, 10, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    [record] = tell(memory, "I met Bob yesterday.", evening).added
    assert (record.text, record.created_at.day) == ("I met Bob on 9 January 2026.", 11)


def test_a_life_counts_from_the_telling(file, clock):
    policy = Policy.from_dict({"user_ttl": "30d"})
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        told = clock.now() - timedelta(days=10)
        [record] = tell(memory, "I live in Lyon.", told).added
        assert record.expires_at == told + timedelta(days=30)
        again = tell(memory, "I live in Lyon.", told + timedelta(days=5), session="s2")
        assert memory.get(*again.confirmed, user_id="ann").expires_at == told + timedelta(days=35)
        turn = Turn(id="old", speaker="user", text="I live in Oslo.", time=JANUARY)
        result = record_turns(memory, [turn], user_id="ann")
        assert result.added == ()
        assert result.skipped == {
            "old": f"told at {JANUARY.isoformat()}, it would have expired at 2026-02-09 09:30:00+00:00, before now"
        }
        assert "I live in Oslo." not in [r.text for r in memory.list(user_id="ann")]


def test_what_was_told_before_a_memory_is_not_that_memory(memory, clock):
    """An older turn that says the same tells that it held before, too; a later one only confirms it."""
    [record] = tell(memory, "I live in Lyon.", JANUARY).added
    assert tell(memory, "I live in Lyon.", JANUARY + timedelta(days=1), session="s2").confirmed == (record.id,)
    [earlier] = tell(memory, "I live in Lyon.", JANUARY - timedelta(days=9), session="s3").added
    memory.maintain()
    assert find(memory) == ["I live in Lyon."]
    assert find(memory, as_of=JANUARY - timedelta(days=5)) == [earlier.text]


@pytest.mark.parametrize("action", ["update", "supersede"])
def test_an_older_turn_closes_no_memory_that_was_told_later(memory, action):
    [newer] = tell(memory, "I have a dog.", JANUARY).added
    decision = FactDecision(action=action, id=newer.id, text="I have a dog called Rex.", reason="told")
    before = JANUARY - timedelta(days=30)
    rules = TurnRules(extractor=FixedExtractor(decision))
    [older] = tell(memory, "I have a dog called Rex.", before, rules=rules).added
    assert (older.created_at, older.valid_from) == (before, before)
    assert not memory.get(newer.id, user_id="ann").is_closed
    later = JANUARY + timedelta(days=30)
    [last] = tell(memory, "I have a dog called Rex.", later, rules=rules, session="s2").added
    closed = memory.get(newer.id, user_id="ann")
    assert (closed.superseded_by, closed.valid_to) == (last.id, later)


def test_what_a_model_adds_later_was_told_then_too(memory):
    rules = TurnRules(background=FixedExtractor(FactDecision(action="add", text="Kim lives in Bergen.", reason="told")))
    [later] = tell(memory, "My sister Kim called. She lives in Bergen.", JANUARY, rules=rules).pending
    [record] = later.result().added
    assert (record.created_at, record.valid_from) == (JANUARY, JANUARY)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (datetime(2026, 1, 10, 9), "the time of turn 'm2' must have a time zone, such as datetime.now\\(UTC\\)"),
        ("2026-01-10T09:00", "the time of turn 'm2' must have a time zone"),
        ("last May", "the time of turn 'm2' must be a datetime with a time zone, a date, or one of both in ISO 8601"),
        (1_768_000_000, "the time of turn 'm2' must be a datetime with a time zone, or a date, got 1768000000"),
        (datetime(2026, 5, 1, 13, tzinfo=UTC), "the time of turn 'm2' must not be after now, 2026-05-01T12:00:00"),
        (date(2026, 5, 3), "the time of turn 'm2' must not be after today, 2026-05-01, got 2026-05-03"),
    ],
)
def test_invalid_time_raises_and_nothing_is_recorded(memory, at, message):
    turns = [Turn(id="m1", speaker="user", text="I live in Lyon."), Turn(id="m2", speaker="user", text="Hi.", time=at)]
    with pytest.raises(ValidationError, match=message):
        add_turns(memory, turns, user_id="ann")
    assert memory.list(user_id="ann") == []


def test_added_text_takes_the_time_of_its_telling(memory, clock):
    record = memory.add("I live in Lyon.", user_id="ann", id="lyon", created_at=JANUARY)
    assert (record.created_at, record.valid_from) == (JANUARY, JANUARY)
    oslo = memory.supersede("lyon", "I live in Oslo.", user_id="ann", created_at=JANUARY + timedelta(days=9))
    assert memory.get("lyon", user_id="ann").valid_to == oslo.created_at
    with pytest.raises(ValidationError, match="created_at must not be after now"):
        memory.add("I live in Rome.", user_id="ann", created_at=clock.now() + timedelta(seconds=1))
    with pytest.raises(PolicyError, match="would have expired"):
        memory.add("I live in Rome.", user_id="ann", created_at=JANUARY, ttl=timedelta(days=9))


def test_memories_are_listed_oldest_first_then_by_id(memory):
    memory.add("I live in Lyon.", user_id="ann", id="now")
    for name in ("c", "a"):
        memory.add(f"Tomatoes {name} need sun.", user_id="ann", id=name, created_at=JANUARY)
    memory.add("Soil needs lime.", user_id="ann", id="b", created_at=JANUARY - timedelta(days=1))
    assert [r.id for r in memory.list(user_id="ann")] == ["b", "a", "c", "now"]


def test_times_of_telling_survive_opening_and_export(file, clock):
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        [record] = tell(memory, "I live in Lyon.", JANUARY).added
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as memory:
        assert memory.get(record.id, user_id="ann") == record
        assert memory.audit.verify().ok
        [row] = memory.export(user_id="ann")["records"]
        assert row["created_at"] == JANUARY.isoformat()
