"""Times that a question names: resolved against the clock, they rank memories added then higher and hide none."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meve.memory._recall.periods import holiday
from meve.memory._recall.time_expressions import find_time
from tests.memory import phrases
from tests.memory.test_everyday_talk import split

NOW = datetime(2026, 10, 14, 8, 30, tzinfo=UTC)  # a Wednesday


STATES = """
Who has my old truck today? | Who has our spare key now? | Which neighbour has my ladder this week?
What job has my brother today? | Is the firm that I told you about still open today? | What have I got on today?
Where does the man I met in Rome live now? | What's my weight this month? | How many hens have we this year?
Does Karen have my old phone now? | Who has the truck I bought now? | Who has my watch these days?
"""
EVENTS = """
What did I tell you today? | What happened today? | What has my sister done today? | Has my boss called this week?
What did my brother do this weekend? | Who owns the house we visited today? | Is there anything I said today?
Have I paid the rent this month? | How was my week? | What have our neighbours told me this year?
"""


@pytest.mark.parametrize("question", split(STATES))
def test_today_and_now_in_a_question_of_what_is_so_are_no_time(question):
    assert find_time(question, NOW) is None


@pytest.mark.parametrize("question", split(EVENTS))
def test_today_and_this_week_in_a_question_of_what_happened_are_a_time(question):
    assert find_time(question, NOW) is not None


@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("What did I tell you last week about the car?", "2026-10-05", "2026-10-12"),
        ("What did I say in May?", "2026-05-01", "2026-06-01"),
        ("What did I say in May 2025?", "2025-05-01", "2025-06-01"),
        ("What did I say in November?", "2025-11-01", "2025-12-01"),
        ("Where was I yesterday?", "2026-10-13", "2026-10-14"),
        ("What did we discuss on Tuesday?", "2026-10-13", "2026-10-14"),
        ("What was it I told you last Friday?", "2026-10-09", "2026-10-10"),
        ("Whom did I meet two months ago?", "2026-08-01", "2026-09-01"),
        ("What did I mention 3 days ago?", "2026-10-11", "2026-10-12"),
        ("Where did we go last weekend?", "2026-10-10", "2026-10-12"),
        ("What have I told you this month?", "2026-10-01", "2026-11-01"),
        ("What did I report on the 5th of May?", "2026-05-05", "2026-05-06"),
        ("What did I report on May 5th, 2025?", "2025-05-05", "2025-05-06"),
        ("What have I said since May?", "2026-05-01", "2026-10-14T08:30"),
        ("What happened last year?", "2025-01-01", "2026-01-01"),
        ("What did I tell you the week before last?", "2026-09-28", "2026-10-05"),
        ("Where did we go two weekends ago?", "2026-10-03", "2026-10-05"),
        ("What did I say about a fortnight ago on Monday?", "2026-09-28", "2026-09-29"),
        ("What did I mention a few days ago?", "2026-10-09", "2026-10-13"),
        ("What did I tell you over the past three weeks?", "2026-09-23T08:30", "2026-10-14T08:30"),
        ("What was I reading last winter?", "2025-12-01", "2026-03-01"),
        ("What did I say since Easter?", "2026-04-02", "2026-10-14T08:30"),
        ("What did I say in the first week of May?", "2026-05-01", "2026-05-08"),
        ("What did I say late last year?", "2025-09-01T08:00", "2026-01-01"),
        ("What did I say in May of last year?", "2025-05-01", "2025-06-01"),
        ("What did I say between Monday and Tuesday?", "2026-10-12", "2026-10-14"),
        ("What did I ask you ten minutes ago?", "2026-10-14T07:20", "2026-10-14T08:30"),
        ("What did I report on the fifth of May?", "2026-05-05", "2026-05-06"),
        ("What did Anna say in Sep 2025?", "2025-09-01", "2025-10-01"),
        ("How much did I spend in Q2?", "2026-04-01", "2026-07-01"),
        ("How much did I spend in the fourth quarter?", "2026-10-01", "2027-01-01"),
        ("How much did I spend in the first quarter of 2025?", "2025-01-01", "2025-04-01"),
        ("What did I read in the first half of 2024?", "2024-01-01", "2024-07-01"),
        ("What did I do in the summer of 2024?", "2024-06-01", "2024-09-01"),
        ("What did I do in the winter of 2024?", "2023-12-01", "2025-03-01"),
        ("What did I do on the 29th of February?", "2024-02-29", "2024-03-01"),
        ("How many times did Anna hike in June?", "2026-06-01", "2026-07-01"),
    ],
)
def test_time_is_resolved_to_a_window_in_the_past(question, since, until):
    window = find_time(question, NOW)
    assert (window.since, window.until) == tuple(datetime.fromisoformat(x).replace(tzinfo=UTC) for x in (since, until))


NOW_TEXT, FIRST = "2026-10-14T08:30", "0002-01-01"


@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("since last Monday", "2026-10-12", NOW_TEXT),
        ("since Monday", "2026-10-12", NOW_TEXT),
        ("since the start of the year", "2026-01-01", NOW_TEXT),
        ("since the beginning of June", "2026-06-01", NOW_TEXT),
        ("since 3 June", "2026-06-03", NOW_TEXT),
        ("since yesterday", "2026-10-13", NOW_TEXT),
        ("since the day before yesterday", "2026-10-12", NOW_TEXT),
        ("since last week", "2026-10-05", NOW_TEXT),
        ("since two weeks ago", "2026-09-28", NOW_TEXT),
        ("since last winter", "2025-12-01", NOW_TEXT),
        ("from June on", "2026-06-01", NOW_TEXT),
        ("before June", FIRST, "2026-06-01"),
        ("before last week", FIRST, "2026-10-05"),
        ("until June", FIRST, "2026-07-01"),
        ("by 3 June", FIRST, "2026-06-04"),
        ("as of 3 June", FIRST, "2026-06-04"),
        ("after June", "2026-07-01", NOW_TEXT),
        ("after yesterday", "2026-10-14", NOW_TEXT),
        ("before Easter", FIRST, "2026-04-09"),  # with the days around it
        ("after Easter", "2026-04-02", NOW_TEXT),
        ("between May and July", "2026-05-01", "2026-08-01"),
        ("from May to July 2025", "2025-05-01", "2025-08-01"),
        ("between November and February", "2025-11-01", "2026-03-01"),
        ("between 3 May and 10 June", "2026-05-03", "2026-06-11"),
        ("between 3 and 10 May", "2026-05-03", "2026-05-11"),
        ("from May 3 to 10", "2026-05-03", "2026-05-11"),
        ("between last month and yesterday", "2026-09-01", "2026-10-14"),
        ("from Monday to Tuesday", "2026-10-12", "2026-10-14"),
        ("in May or June", "2026-05-01", "2026-07-01"),
        ("in June or July 2025", "2025-06-01", "2025-08-01"),
        ("in 2023 and 2024", "2023-01-01", "2025-01-01"),
        ("in the week of 6 May", "2026-05-04", "2026-05-13"),
        ("in the second week of May", "2026-05-01", "2026-06-01"),
        ("around 6 May", "2026-05-03", "2026-05-10"),
        ("a year ago today", "2025-01-01", "2026-01-01"),
    ],
)
def test_word_before_a_time_tells_where_the_window_begins_and_ends(words, since, until):
    window = find_time(f"What did I do {words}?", NOW)
    assert window.expression in words
    assert (window.since, window.until) == tuple(datetime.fromisoformat(x).replace(tzinfo=UTC) for x in (since, until))


@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("Did I run more in May than in August?", "2026-05-01", "2026-09-01"),
        ("What did I say last week about the trip on 3 June?", "2026-06-03", "2026-10-12"),
        ("Did I run more this week than last week?", "2026-10-05", "2026-10-19"),
    ],
)
def test_window_holds_all_times_that_a_question_names(question, since, until):
    window = find_time(question, NOW)
    assert (window.since, window.until) == tuple(datetime.fromisoformat(x).replace(tzinfo=UTC) for x in (since, until))


@pytest.mark.parametrize(
    "question",
    [
        "What did I do since May left me?",
        "What did I do after 3 June was over?",
        "What did I do before May or June?",
        "What did I do between May and my birthday?",
        "What did I do from 3 June to his birthday?",
        "What did I say I need before 3 June?",
        "What did I book for 3 June?",
        "What did I do in December or January 2025?",
        "What did I do on the last weekend of the holidays?",
        "What did I do since 31 June?",
        "What happened in the first quarter of the game?",
    ],
)
def test_time_that_cannot_be_told_gives_no_window_instead_of_a_narrower_one(question):
    assert find_time(question, NOW) is None


@pytest.mark.parametrize(
    "question",
    [
        "List all hikes since May.",
        "Count my hikes since May.",
        "Hikes since May?",
        "Which films has Anna seen since May?",
    ],
)
def test_since_names_the_past_without_a_word_of_telling(question):
    window = find_time(question, NOW)
    assert (window.expression, window.since) == ("since May", datetime(2026, 5, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "question",
    [
        "I have lived in Oslo since May.",
        "My rent is 900 since May.",
        "Who is my boss since May?",
        "Since May is warm, what do I wear?",
        "My rent is higher since June. What is my name?",
        "List my appointments in June.",
    ],
)
def test_statements_and_questions_about_the_present_name_no_past(question):
    assert find_time(question, NOW) is None


@pytest.mark.parametrize(
    "question",
    [
        "What may I eat?",
        "What do I have next week?",
        "Who marches on Tuesday?",
        "What happens in May?",
        "What did I say, may I ask, of march?",
        "Where do I live?",
    ],
)
def test_other_words_and_times_of_events_are_no_window(question):
    assert find_time(question, NOW) is None


NUMBERS = st.integers(0, 999).map(str)
WORDS = [
    *("last", "in", "on", "since", "said", "May", "Tuesday", "week", "weekend", "ago", "days", "years", "2026-13-45"),
    *("a few", "the", "past", "before last", "or so", "early", "end of", "winter", "Easter", "month", "between", "and"),
    *("first", "quarter", "minutes", "half a", "fortnight", "couple of", "this", "previous"),
    *("before", "after", "until", "from", "or", "to", "week of", "Q2", "30 Feb", "29 February", "second half", "Sept"),
]


@given(st.lists(st.sampled_from(WORDS) | NUMBERS, max_size=8))
def test_any_question_is_read_without_an_error(parts):
    window = find_time(" ".join(["said", *parts]), NOW)
    assert window is None or window.since < window.until


@pytest.mark.parametrize(("half", "least"), [(0, 30), (1, 29)])
def test_times_are_understood_as_people_say_them(half, least):
    """The day that is meant is within the window, and another day isn't."""

    def noon(day):
        return datetime.fromisoformat(day).replace(hour=11, tzinfo=UTC)

    found = [(find_time(question, phrases.NOW), meant, other) for question, meant, other in phrases.TIMES[half::2]]
    assert sum(t is not None and t.contains(noon(m)) and not t.contains(noon(o)) for t, m, o in found) >= least
    assert [question for question in phrases.NOT_TIMES[half::2] if find_time(question, phrases.NOW)] == []


@pytest.mark.parametrize("zone", ["UTC", "Europe/Prague", "America/New_York"])
@pytest.mark.parametrize("time", ["on 0001-01-01", "around 1 January 0001", "around 0001-01-02", "in Q1 0001",
                                  "the weekend of 2 January 0001", "in early February 0001", "at Easter 0000",
                                  "since 0001-01-01", "before 0001-01-03"])  # fmt: skip
def test_times_at_the_beginning_of_the_calendar_name_none(time, zone):
    assert find_time(f"What did I do {time}?", datetime(2026, 5, 20, tzinfo=ZoneInfo(zone))) is None


@pytest.mark.parametrize("day", ["1818-03-22", "1900-04-15", "2025-04-20", "2026-04-05", "2038-04-25", "2285-03-22"])
def test_easter_is_the_sunday_of_the_gregorian_calendar(day):
    begin, _ = holiday("easter", datetime(int(day[:4]), 12, 31, tzinfo=UTC))
    assert (begin + timedelta(days=3)).date().isoformat() == day


def test_memory_said_then_comes_first_and_none_is_hidden(memory, clock):
    for n, text in enumerate(("The car is red.", "We sold the car.", "Ann likes her car.", "The car needs oil.")):
        memory.add(text, id=f"week{n}", user_id="alice", ttl=timedelta(days=90))
        clock.advance(timedelta(days=7))
    recall = memory.search("What did I tell you two weeks ago about the car?", user_id="alice")
    assert recall.records[0].id == "week2"
    assert len(recall.records) == 4
    time = recall.trace.phases[0].settings["time"]
    assert time["expression"] == "two weeks ago"
    assert time["since"] <= recall.records[0].created_at.isoformat() < time["until"]


def test_memory_said_then_is_found_among_thousands_of_better_ones(memory, clock):
    memory.add("The gearbox is broken.", id="old", user_id="alice", ttl=timedelta(days=900))
    clock.advance(timedelta(days=7))
    for n in range(80):
        memory.add(f"The car, the car, the car {n}.", user_id="alice", ttl=timedelta(days=900))
    recall = memory.search("What did I say about the car last week?", user_id="alice", limit=60, max_tokens=9_000)
    assert "old" in {r.id for r in recall.records}
