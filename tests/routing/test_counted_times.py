"""Answers to `how often` and `how many times` are compared with the memories that tell of it."""

from datetime import UTC, datetime, timedelta

import pytest

from meve.memory import GovernedMemory
from meve.routing import MemoryRouter
from meve.routing._counted_times import find_times
from meve.testing.fakes import FakeClock

TOLD = (
    "I went hiking in the Tatra mountains.", "I read Walden.", "I went hiking up Lysa hora.", "My sister Jana sings.",
    "I bought a tent for 9 euros.", "I hiked to Bergamo.", "I swam in the lake.", "My boss likes tea.",
    "I never went skiing.", "I go to the gym every Monday.", "I saw nine ducks.", "I moved a sofa.",
)  # fmt: skip


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    clock = FakeClock(datetime(2026, 1, 1, 12, tzinfo=UTC))
    with GovernedMemory.open(tmp_path_factory.mktemp("times") / "memory.db", clock=clock) as memory:
        for text in TOLD:
            memory.add(text, user_id="alice", source="chat_user")
            clock.advance(timedelta(days=7))
        yield memory


@pytest.mark.parametrize(
    ("question", "answer", "passes"),
    [
        ("How often did I go hiking?", "Three times.", True),
        ("How often did I go hiking?", "Thrice.", True),
        ("How often did I go hiking?", "3", True),
        ("How often did I go hiking?", "A couple of times.", True),
        ("How often did I go hiking?", "Several times.", True),
        ("How often did I go hiking?", "Nine times.", False),
        ("How often did I go hiking?", "9", False),
        ("How often did I go hiking?", "Once.", False),
        ("How many times did I go hiking?", "You went hiking twice.", False),
        ("How often did I swim?", "Once.", True),
        ("How often did I swim?", "Twice.", False),
        ("How many times did I go hiking since February?", "Once.", True),
        ("How often did I go to the gym?", "Nine times.", True),
    ],
)
def test_number_of_times_must_agree_with_the_memories_that_tell_it(memory, question, answer, passes):
    result = MemoryRouter(memory, user_id="alice", llm=lambda prompt: answer).answer(question)
    assert (not result.abstained) is passes, result.verdicts
    assert passes or result.verdicts[-1].check == "count"


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        ("Once.", 1), ("Twice!", 2), ("thrice", 3), ("Nine times.", 9), ("9", 9), ("You ran 12 times.", 12),
        ("Twenty times", 20), ("A couple of times", None), ("At least three times", None), ("Once or twice", None),
        ("Once in May, twice in June", None), ("You ran 8 km in May", None), ("Three times a week", None),
    ],
)  # fmt: skip
def test_number_of_times_is_read_in_words_and_digits(answer, times):
    assert find_times(answer) == times


@pytest.mark.parametrize("answer", ["Once.", "Twenty.", "Ninety"])
def test_number_in_words_is_no_word_that_the_evidence_must_hold(memory, answer):
    from meve.routing._grounding import look_up, read_evidence

    told = read_evidence(memory.list(user_id="alice"))
    assert look_up(answer, "How many?", told, calculated=True).share == 1.0
