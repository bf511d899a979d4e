"""The user's time zone: days of a recall, and times that a question names, are of it; stored moments stay in UTC."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from meve.errors import ValidationError
from meve.memory import GovernedMemory
from meve.memory._recall.time_expressions import find_time
from meve.routing import MemoryRouter
from meve.testing.fakes import FakeClock

SYDNEY = "Australia/Sydney"


class LocalClock(FakeClock):
    """A clock whose moments are in Sydney's time zone."""

    def now(self):
        return super().now().astimezone(ZoneInfo(SYDNEY))


@pytest.fixture
def fence(file):
    """Yield a memory that was told on Tuesday 10 March, 9:00 in Sydney, and is asked on Wednesday at 9:00."""
    clock = FakeClock(datetime(2026, 3, 9, 22, tzinfo=UTC))
    with GovernedMemory.open(file, clock=clock, embedder="static") as memory:
        memory.add("I repaired the fence.", id="fence", user_id="ann", source="chat_user")
        clock.advance(timedelta(days=1))
        yield memory


@pytest.mark.parametrize("max_tokens", [512, 100])
def test_days_of_a_recall_are_of_the_time_zone(fence, max_tokens):
    asked = {"query": "Who repaired the fence?", "user_id": "ann", "max_tokens": max_tokens}
    days = ("2026-03-09:", "2026-03-10:") if max_tokens > 256 else ("9 March 2026:", "10 March 2026:")
    for zone, day in ((None, days[0]), (SYDNEY, days[1]), ("UTC", days[0])):  # a search may not see another's cache
        recall = fence.search(**asked, time_zone=zone)
        assert day in recall.text
        assert recall.records[0].created_at == datetime(2026, 3, 9, 22, tzinfo=UTC)


def test_days_of_a_prompt_are_of_the_time_zone(fence):
    assert "2026-03-10:" in fence.prompt("Who repaired it?", user_id="ann", max_tokens=900, time_zone=SYDNEY).text


@pytest.mark.parametrize("words", ["yesterday", "on Tuesday", "on 10 March", "since yesterday", "this week"])
def test_times_of_a_question_are_of_the_time_zone(fence, words):
    question = f"What did I do {words}?"
    there = MemoryRouter(fence, user_id="ann", search={"time_zone": SYDNEY}).recall(question)
    assert there.matching_ids == {"fence"}
    assert "2026-03-10:" in there.text
    elsewhere = MemoryRouter(fence, user_id="ann", search={"time_zone": "America/New_York"}).recall(
        "What did I do today?"
    )
    assert elsewhere.matching == 0
    time = fence.search(question, user_id="ann", time_zone=SYDNEY).trace.phases[0].settings["time"]
    assert time == there.plan.period.to_dict()
    assert time["since"] in ("2026-03-08T13:00:00+00:00", "2026-03-09T13:00:00+00:00")


def test_prompt_of_an_answer_names_the_day_of_the_time_zone(fence):
    prompts = []
    router = MemoryRouter(fence, user_id="ann", llm=lambda p: prompts.append(p) or "No.", search={"time_zone": SYDNEY})
    router.answer("Did I repair the fence yesterday?")
    assert "Today is Wednesday, 11 March 2026." in prompts[0]


@pytest.mark.parametrize("zone", [None, SYDNEY])
def test_clock_of_another_zone_changes_nothing(fence, zone):
    clock = LocalClock(datetime(2026, 3, 10, 22, tzinfo=UTC))
    for words in ("yesterday", "on 9 March", "two weeks ago", "lately"):
        plans = [
            MemoryRouter(fence, user_id="ann", clock=each, search={"time_zone": zone}).plan(f"What did I do {words}?")
            for each in (None, clock)
        ]
        assert plans[0] == plans[1]


def test_days_in_which_clocks_are_set_back_or_forward_end_at_midnight():
    prague = ZoneInfo("Europe/Prague")
    now = datetime(2026, 10, 26, 9, tzinfo=prague)
    window = find_time("What did I do yesterday?", now)
    assert window.until - window.since == timedelta(hours=25)
    assert window.until == datetime(2026, 10, 26, tzinfo=prague)
    recent = find_time("What did I say in the last 2 hours?", datetime(2026, 3, 29, 3, 30, tzinfo=prague))
    assert recent.until - recent.since == timedelta(hours=2)


@pytest.mark.parametrize("zone", ["Atlantis/Poseidonis", "", "../UTC", 5, ["UTC"]])
def test_unknown_time_zone_is_refused(fence, zone):
    with pytest.raises(ValidationError, match="time_zone must be the IANA name"):
        fence.search("fence", user_id="ann", time_zone=zone)
    with pytest.raises(ValidationError, match="time_zone must be the IANA name"):
        MemoryRouter(fence, user_id="ann", search={"time_zone": zone})
