"""Judges of updates that are given to a memory: a model's or a user's own."""

from datetime import timedelta

import pytest

from meve.errors import ConfigurationError, ModelError
from meve.memory import GovernedMemory, LlmUpdateJudge, UpdateVerdict
from tests.memories import LASTING, add_old_and_new


class Listed:
    """A judge with one verdict, which lists what it was asked."""

    def __init__(self, relation):
        self.relation, self.asked = relation, []

    def judge(self, older, newer):
        self.asked.append((older, newer))
        return UpdateVerdict(relation=self.relation, reason="claim")


@pytest.mark.parametrize(("relation", "step"), [("same", "merged"), ("replaces", "superseded")])
def test_a_given_judge_decides_in_maintenance(file, clock, relation, step):
    judge = Listed(relation)
    with GovernedMemory.open(file, clock=clock, updates=judge) as memory:
        add_old_and_new(memory, "I love tea in the garden.", "I love tea in the garden, always.")
        memory.add("The night train was late.", id="other", **LASTING)
        assert memory.maintain().counts()[step] == 1
    assert judge.asked == [("I love tea in the garden.", "I love tea in the garden, always.")]


@pytest.mark.parametrize(("count", "probability", "closed"), [(2, 0.9, 2), (3, 0.9, 0), (3, None, 3)])
def test_what_only_the_trained_model_lets_end_many_memories_ends_none(file, clock, count, probability, closed):
    """Such a statement is mostly talk or a general truth. A judge of your own decides alone."""

    class Ender:
        def judge(self, older, newer):
            relation = "replaces" if newer == "No more tea for me." else "different"
            return UpdateVerdict(relation=relation, reason="claim", probability=probability)

    with GovernedMemory.open(file, clock=clock, updates=Ender()) as memory:
        for place in ("garden", "kitchen", "office")[:count]:
            memory.add(f"I drink my tea in the {place}.", id=place, **LASTING)
        clock.advance(timedelta(hours=1))
        memory.add("No more tea for me.", id="new", **LASTING)
        assert memory.maintain().counts()["superseded"] == closed


def test_model_answer_decides_and_each_pair_is_asked_once():
    prompts = []

    def complete(prompt):
        prompts.append(prompt)
        return " Replaces.\n"

    judge = LlmUpdateJudge(complete)
    for _ in range(2):
        assert judge.judge("I like tea.", 'I like "cocoa".').relation == "replaces"
    (prompt,) = prompts
    assert '"I like \\"cocoa\\"."' in prompt


@pytest.mark.parametrize("answer", ["", "same or different", "Yes", None, 3, "replaces, since the user moved"])
def test_any_other_model_answer_keeps_both(answer):
    assert LlmUpdateJudge(lambda _: answer).judge("I like tea.", "I like cocoa.").relation == "different"


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ("The rent is 900 euros.", "The rent amounts to 900 euros.", "same"),
        ("The rent is 900 euros.", "The rent is 950 euros.", "different"),
        ("I eat meat.", "I don't eat meat.", "different"),
        ("I met Tom.", "I met Tim.", "different"),
    ],
)
def test_model_cannot_merge_statements_with_other_values(one, other, relation):
    assert LlmUpdateJudge(lambda _: "same").judge(one, other).relation == relation


def test_failing_model_raises():
    def fail(_):
        raise RuntimeError("out of order")

    with pytest.raises(ModelError, match="out of order"):
        LlmUpdateJudge(fail).judge("I like tea.", "I like cocoa.")
    with pytest.raises(ConfigurationError, match="llm must be a blocking function"):
        LlmUpdateJudge(5)
