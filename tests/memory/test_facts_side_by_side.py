"""Plain facts that a user tells about one topic all stay: none of them announces a change."""

from datetime import timedelta

import pytest

from meve.memory._contradiction.trained import TrainedUpdateJudge
from tests.memories import open_memory

JOB = """
I work at a bakery.
I work from home on Fridays.
My boss is Anna.
I work as a pastry chef.
My shift starts at 4 in the morning.
I earn 2,400 euros a month.
I have five colleagues.
I take the bus to work.
My contract ends in December.
I share an office with Tim.
I started there in 2019.
My company has 200 employees.
I swim before work.
"""
FAMILY = """
I'm married.
My wife is called Sara.
My son Max is six.
My daughter plays the violin.
My mother lives in Porto.
My sister Eva is a nurse.
My wife works at the library.
My daughter is in third grade.
Our dog is called Rex.
Rex hates fireworks.
My cousin Ben runs a bar.
Ben got married.
"""
FOOD = """
I like tea.
I don't like tea at night.
I'm lactose intolerant.
I can't stand coriander.
I tried coriander on 13 March 2026.
My favourite dish is lasagne.
I bake bread on Sundays.
I'm allergic to nuts.
I like my tea with milk.
"""


NEWS = [
    ("The dog is called Rex.", "Rex goes nuts at the fireworks on New Year's Eve."),
    ("My order 4711 has arrived.", "New order placed."),
    ("My invoice 12 is paid.", "A new invoice came."),
    ("The parcel has been delivered.", "New parcel sent."),
    ("I teach piano.", "I sold the piano."),
    ("I work as a sailmaker.", "I gave up sailing."),
    ("I have three apple trees.", "I cut back the apple trees on Saturday."),
    ("There are three apple trees in my garden.", "I cut back the apple trees on Saturday."),
    ("I need reading glasses.", "I found my glasses again."),
    ("I keep bees in the garden.", "I've moved the hives."),
    ("I have a cat.", "I found the cat again."),
    ("I drink my coffee black.", "I bought a new coffee machine."),
    ("From June on I'll work at Dr. Seidel's practice.", "I no longer work at St. Georg."),
    ("I work at Siemens.", "I no longer work at Bosch."),
]
ENDS = [
    ("I can't find my keys.", "I found my keys again."),
    ("I'm unemployed.", "I found a job again."),
    ("I work at Bosch.", "I no longer work at Bosch."),
]


def test_news_of_one_day_or_of_another_thing_ends_nothing(file, clock):
    with open_memory(file, clock=clock, embedder="static") as memory:
        for time in (0, 1):
            for n, pair in enumerate(NEWS):
                memory.add(pair[time], user_id=f"user {n}")
            clock.advance(timedelta(days=1))
        memory.maintain()
        kept = [len(memory.list(user_id=f"user {n}")) for n in range(len(NEWS))]
    assert [pair for pair, count in zip(NEWS, kept, strict=True) if count < 2] == []


@pytest.mark.parametrize("pair", ENDS)
def test_what_is_found_again_or_ended_by_name_replaces(pair):
    assert TrainedUpdateJudge().judge(*pair).relation == "replaces"


@pytest.mark.parametrize("step", [1, -1], ids=["in this order", "in the other order"])
@pytest.mark.parametrize("facts", [JOB, FAMILY, FOOD], ids=["job", "family", "food"])
def test_plain_facts_of_a_topic_replace_none_of_each_other(file, clock, facts, step):
    told = facts.strip().splitlines()[::step]
    with open_memory(file, clock=clock, embedder="minilm") as memory:
        for text in told:
            memory.add(text, user_id="alice")
            clock.advance(timedelta(days=1))
            memory.maintain()
        kept = {record.text for record in memory.list(user_id="alice")}
    assert [text for text in told if text not in kept] == []
