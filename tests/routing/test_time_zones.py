"""Days are those of the user's time zone, where events are counted and where answers are checked."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from meve.memory import GovernedMemory
from meve.routing import MemoryRouter
from meve.routing._grounding import read_evidence
from meve.testing.fakes import FakeClock

RUN = "I went for a run."
ZONE = "Australia/Sydney"


def test_events_are_counted_by_days_of_the_time_zone(tmp_path):
    clock = FakeClock(datetime(2026, 5, 1, 13, tzinfo=UTC))  # 23:00 in Sydney
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as memory:
        memory.add(RUN, user_id="alice", source="chat_user")
        clock.advance(timedelta(hours=2))  # the next day in Sydney
        memory.add(RUN, user_id="alice", source="chat_user")
        clock.advance(timedelta(days=3))
        shown = [
            len(
                MemoryRouter(memory, user_id="alice", search=options)
                .recall("How many times did I go for a run?")
                .records
            )
            for options in ({}, {"time_zone": ZONE})
        ]
    assert shown == [1, 2]


def test_days_of_the_evidence_are_those_of_the_time_zone(tmp_path):
    clock = FakeClock(datetime(2025, 12, 31, 22, tzinfo=UTC))  # New Year's Day in Sydney
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as memory:
        record = memory.add(RUN, user_id="alice", source="chat_user")
        assert [day.year for day in read_evidence([record]).days] == [2025]
        assert [day.year for day in read_evidence([record], ZoneInfo(ZONE)).days] == [2026]
        router = MemoryRouter(memory, user_id="alice", llm=lambda _: "In February", search={"time_zone": ZONE})
        assert router.answer("When did I go for a run?").text == "In February"  # at most a month from the evidence
