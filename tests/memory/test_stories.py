"""An agent that answers correctly for two weeks, with maintenance each day, loses no fact."""

from datetime import timedelta

import pytest

from meve.memory import GovernedMemory, Policy
from tests.memories import open_memory

FACTS = {
    "town": "I live in Lyon.",
    "allergy": "My daughter is allergic to nuts.",
    "son": "My son is allergic to milk.",
    "job": "I work nights at the hospital, from 21:00 to 7:00.",
    "style": "Keep your answers short, please.",
    "wedding": "My sister Camille gets married on 14 June.",
    "diet": "I eat no meat.",
    "cats": "I have two cats.",
}
TURNS = (
    ("Which town do I live in?", "Sure! You live in Lyon."),
    ("Where do I live?", "Of course: Lyon."),
    ("What can I bake for my daughter?", "Great question! Shortbread is safe: flour, butter and sugar."),
    ("What can my son drink?", "Happy to help. Oat drink, or apple juice."),
    ("When should I see the dentist?", "Late in the afternoon, around 16:00."),
    ("Can I take a call at 22:00?", "No, that's an hour into your shift."),
    ("When does Camille marry?", "14 June."),
    ("Can I eat this lasagne?", "No."),
    ("How many cats do I have?", "You have 2 cats."),
    ("What is a heat pump?", "It moves heat from outside air into your home."),
)


@pytest.mark.parametrize("policy", [None, Policy.paper()], ids=["default", "paper"])
def test_correct_answers_lose_facts_under_the_published_policy_only(file, clock, policy):
    with GovernedMemory.open(file, clock=clock, policy=policy) as memory:
        for name, text in FACTS.items():
            memory.add(text, id=name, user_id="alice")
        verdicts = []
        for _ in range(14):
            for question, answer in TURNS:
                recall = memory.search(question, user_id="alice")
                verdicts += memory.reflect(recall, answer=answer).verdicts.values()
            clock.advance(timedelta(days=1))
            memory.maintain()
        left = {r.id: r for r in memory.list(user_id="alice")}
        if policy is not None:
            assert left == {}
            return
        assert left.keys() == FACTS.keys()
        assert [v.reason for v in verdicts if v.outcome == "contradicted"] == []
        assert all(r.reflection >= 30 and not r.flagged for r in left.values())


def test_silence_about_a_memory_costs_it_nothing(memory):
    memory.add("Always answer in German.", id="german", user_id="alice")
    before = memory.get("german", user_id="alice").reflection
    recall = memory.search("How do I answer in German?", user_id="alice")
    result = memory.reflect(recall, answer="Natürlich! Mit Ja oder Nein.")
    assert result.verdicts["german"].outcome == "unmentioned"
    assert memory.get("german", user_id="alice").reflection == before


def test_true_contradiction_is_flagged_and_never_pruned(memory, clock):
    memory.add("I live in Lyon.", id="town", user_id="alice")
    for _ in range(20):
        recall = memory.search("Where do I live?", user_id="alice")
        assert memory.reflect(recall, answer="You live in Paris.").verdicts["town"].outcome == "contradicted"
        clock.advance(timedelta(days=10))
        memory.maintain()
    record = memory.get("town", user_id="alice")
    assert (record.flagged, record.reflection, record.archived) == ("contradicted by an answer", 0, False)
    assert [r.id for r in memory.search("Where do I live?", user_id="alice").records] == ["town"]
    assert memory.restore("town", user_id="alice").flagged == ""


@pytest.mark.parametrize(("days", "first"), [(60, "b"), (1, "a")])
def test_of_two_equally_relevant_memories_the_one_that_is_no_longer_used_ranks_lower(file, clock, days, first):
    with open_memory(file, clock=clock) as memory:
        memory.add("Red boats sail.", id="a", user_id="alice")
        clock.advance(timedelta(days=days))
        memory.add("Red birds sing.", id="b", user_id="alice")
        recall = memory.search("red", user_id="alice")
    assert recall.records[0].id == first, "at first, a tie goes to the smaller id"
