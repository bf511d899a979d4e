"""What ends a memory and what doesn't: trips and other events, plans for a day, people, things and homes."""

from datetime import timedelta

import pytest

from meve.memory._contradiction.statements import parse_statement
from meve.memory._contradiction.trained import TrainedUpdateJudge
from tests.memories import open_memory

KEPT = [
    # what was done or seen once
    ("We spent ten days in Asturias, Spain", "I quit the Spanish lessons"),
    ("I flew to Lisbon with Ana", "Ana and I broke up"),
    ("I have visited Nikos in Athens", "Nikos and I split up"),
    ("I wrote a short story about sailing", "I gave up sailing"),
    ("I live in Porto with Rui", "Rui and I went to Madeira in April"),
    # a plan ends by its day
    ("I'm going to Vienna to see Salma this weekend", "Salma and I broke up"),
    ("I'm back at work on Monday", "I got the job!"),
    ("I'm back at work on 20 May 2024", "I quit my job"),
    ("I have a job interview at Bosch on Friday", "I quit my job"),
    # who somebody is
    ("My wife is called Irina. She works at the hospital.", "Irina quit the hospital"),
    ("My girlfriend is called Salma. She has a Vespa.", "Salma sold the Vespa"),
    ("My wife is called Irina. She has a cat.", "The cat died"),
    ("I keep bees", "I've moved the hives"),
    # where a thing is
    ("My passport lies in the desk drawer", "The photos lie in the desk drawer these days"),
]
ENDED = [
    ("I'm flying to Oslo on Thursday", "My flight to Oslo was moved to Saturday"),
    ("I have a dentist appointment on Friday", "I cancelled the dentist appointment"),
    ("I take Spanish lessons on Wednesdays", "I quit the Spanish lessons"),
    ("My girlfriend is called Salma. She lives in Vienna.", "Salma and I broke up"),
    ("My boyfriend is called Luc. He lives in Nancy.", "Luc and I separated"),
    ("My partner is called Mads. He's a joiner.", "Mads and I are no longer together"),
    ("We have a dog called Rex. He is five.", "Rex died"),
    ("I ride a Vespa", "Sold the Vespa"),
    ("I live in Leipzig with my husband", "We now live in Halle"),
    ("I live in Kiel", "I moved to Lübeck in March"),
    ("I live in Graz with my parents", "I've moved to Linz"),
    ("My passport is in the desk drawer", "My passport is in the safe now"),
]


@pytest.fixture
def closed(file, clock):
    """Return the pairs of which maintenance closed the older statement."""
    pairs = KEPT + ENDED
    with open_memory(file, clock=clock, embedder="minilm") as memory:
        for time in (0, 1):
            for n, pair in enumerate(pairs):
                memory.add(pair[time], user_id=f"user {n}", id=str(time))
            clock.advance(timedelta(days=1))
        memory.maintain()
        left = [{record.id for record in memory.list(user_id=f"user {n}")} for n in range(len(pairs))]
    assert [pair for pair, ids in zip(pairs, left, strict=True) if "1" not in ids] == []
    return [pair for pair, ids in zip(pairs, left, strict=True) if "0" not in ids]


def test_maintenance_closes_what_ended_and_nothing_else(closed):
    assert closed == ENDED


@pytest.mark.parametrize("newer", ["I moved to Lübeck.", "We have moved to Lübeck with the kids."])
def test_a_move_between_known_cities_ends_a_home_in_other_words(newer):
    home, move = map(parse_statement, ("I live in Kiel.", newer))
    assert TrainedUpdateJudge().compare_statements(home, move, similarity=0.1).reason == "change"


@pytest.mark.parametrize("newer", ["I moved to Kiel in March.", "My brother moved to Lübeck.", "I moved to Denmark."])
def test_a_move_elsewhere_ends_no_home(newer):
    home, move = map(parse_statement, ("I live in Kiel.", newer))
    assert TrainedUpdateJudge().compare_statements(home, move, similarity=0.1).relation == "different"


@pytest.mark.parametrize("newer", ["Julia is my new boss.", "Tom is my husband now."])
def test_how_the_user_is_called_does_not_end_with_news_of_a_person(newer):
    judge = TrainedUpdateJudge()
    for older in ("My name is Nina.", "I'm called Nina."):
        assert judge.judge(older, newer).relation == "different"
    for name in ("My name is Nora now.", "I go by Nora now.", "Call me Nora from now on."):
        assert judge.judge("My name is Nina.", name).relation == "replaces"
