"""Questions for a state at a past time read what was told before that time, and what has been replaced since."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.memory import GovernedMemory
from meve.routing import MemoryRouter
from meve.testing.fakes import FakeClock

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TOLD = (
    ("2026-01-04", "flat", "I live in Ghent, in a flat above a bakery."),
    ("2026-01-20", "weight", "I weigh 71 kilos."),
    ("2026-02-02", "boss", "My boss is Marieke."),
    ("2026-02-11", "trip", "I went skiing in Val Thorens with Tom."),
    ("2026-03-15", "moved", "I moved to Antwerp and live by the river."),
    ("2026-04-20", "julia", "Julia is my boss now."),
    ("2026-08-22", "lighter", "I weigh 66 kilos."),
)
REPLACED = {"flat": "moved", "boss": "julia", "weight": "lighter"}


def at(day):
    return datetime.fromisoformat(day).replace(tzinfo=UTC, hour=12)


@pytest.fixture(scope="module", params=["replaced", "not replaced"])
def router(request, tmp_path_factory):
    """Return a router of a memory that was told values over months; of those in it, former ones may be closed."""
    clock = FakeClock(at(TOLD[0][0]))
    formers = {new: former for former, new in REPLACED.items()} if request.param == "replaced" else {}
    with GovernedMemory.open(tmp_path_factory.mktemp("states") / "memory.db", clock=clock) as memory:
        for day, id, text in TOLD:
            clock.advance(at(day) - clock.now())
            if id in formers:
                memory.supersede(formers[id], text, user_id="nina")
            else:
                memory.add(text, user_id="nina", source="chat_user", id=id)
        clock.advance(NOW - clock.now())
        yield MemoryRouter(memory, user_id="nina")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where did I live in February?", "Ghent"),
        ("Where did I live in June?", "Antwerp"),
        ("What did I weigh in March?", "71 kilos"),
        ("What did I weigh in September?", "66 kilos"),
        ("Who was my boss in March?", "Marieke"),
        ("Who was my boss before Julia?", "Marieke"),
    ],
)
def test_what_held_at_the_time_comes_first(router, question, answer):
    assert answer in router.recall(question).records[0].text


@pytest.mark.parametrize(
    "question",
    ["How much weight have I lost since February?", "How much weight did I lose between March and September?",
     "Do I weigh less now than last winter?"],
)  # fmt: skip
def test_question_how_much_something_changed_reads_what_held_before(router, question):
    recall = router.recall(question)
    assert (recall.plan.intent, recall.plan.history) == ("compare", True)
    assert "71 kilos" in recall.text
    assert "66 kilos" in recall.text


def test_event_at_a_past_time_is_not_looked_for_before_that_time(router):
    shown = {record.text[:12] for record in router.recall("Where did I ski in March?").records}
    assert "I went skiin" not in shown
    assert "I moved to A" in shown


def test_replaced_value_shows_until_when_it_held(tmp_path):
    clock = FakeClock(at("2026-01-04"))
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as memory:
        memory.add("I live in Ghent.", user_id="nina", source="chat_user", id="flat")
        clock.advance(timedelta(days=70))
        memory.supersede("flat", "I live in Antwerp.", user_id="nina")
        clock.advance(timedelta(days=70))
        prompts = []
        router = MemoryRouter(memory, user_id="nina", llm=lambda prompt: prompts.append(prompt) or "Ghent")
        evidence = router.recall("Where did I live in February?")
        assert "[1] I live in Ghent. (until 2026-03-15)" in evidence.text
        assert "I live in Antwerp. (" not in evidence.text
        assert router.answer("Where did I live in February?").text == "Ghent"
        assert "[1] I live in Ghent. (until 2026-03-15)" in prompts[0]


def test_memory_that_held_before_it_was_told_shows_since_when(tmp_path):
    clock = FakeClock(at("2026-05-04"))
    with GovernedMemory.open(tmp_path / "memory.db", clock=clock) as memory:
        memory.add("I work at Umicore.", user_id="nina", source="chat_user", valid_from=at("2025-09-10"))
        text = MemoryRouter(memory, user_id="nina").recall("Where did I work in January?").text
        assert "I work at Umicore. (from 2025-09-10)" in text


@pytest.mark.parametrize(
    "question",
    [
        "Where did I live in February?", "Where was I living in spring?", "Who was my boss in March?",
        "What car did I have in 2024?", "Which medicine was I taking in May?", "Was I a vegetarian last year?",
        "How much did I weigh in June?", "Where did my sister work in March?", "Which shift was I on in June?",
        "Who was I married to in 2024?", "What was my rent in June?", "How old was our dog in April?",
        "Who lived with me in March?", "Who was treasurer in May?", "Where did I live before I moved to Leuven?",
        "Who was my boss before Julia?",
        "Do I still have the bike?", "Does Ewa still work at the post office?",
    ],
)  # fmt: skip
def test_question_with_a_verb_of_state_asks_for_a_state(router, question):
    assert router.plan(question).state


@pytest.mark.parametrize(
    "question",
    [
        "What did I do last week?", "Where did I go in July?", "What did I buy in March?", "Who did I visit in May?",
        "When was my appointment in May?", "How many times did I go hiking since May?", "How was my weekend?",
        "What was I doing last week?", "What happened in June?", "Where was I in July?", "What did I wear on Saturday?",
        "What did I have for lunch last week?", "Where do I live?", "Who is my boss?", "Where did I live?",
        "Who was at the party in May?", "What did I take on the trip in May?",
        "What was the course that I joined in May?",
    ],
)  # fmt: skip
def test_question_for_an_event_or_for_now_asks_for_no_state(router, question):
    assert not router.plan(question).state


@pytest.mark.parametrize("question", ["Do I still have the bike?", "Do I still live in Ghent?"])
def test_question_whether_something_still_holds_reads_one_fact_and_what_ended_it(router, question):
    plan = router.plan(question)
    assert (plan.tier, plan.intent, plan.history) == ("targeted", "fact", True)


def test_question_for_several_states_is_a_list(router):
    for question in ("Which cities did I live in in 2026?", "Which towns in Spain was I living in in 2025?"):
        plan = router.plan(question)
        assert (plan.intent, plan.state) == ("list", True)


def test_time_of_a_question_for_all_that_happened_is_a_filter(router):
    assert not router.plan("What were the highlights of 2025?").state
