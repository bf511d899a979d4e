"""Prompts: within their budget, the last turns verbatim, and level over a long conversation."""

import pytest

from meve.errors import ConfigurationError, ValidationError
from meve.memory import PromptBudget, Turn

TURNS = [("user" if n % 2 == 0 else "assistant", f"This is turn {n}, on bread and water.") for n in range(100)]


@pytest.fixture
def known(memory):
    for n in range(10):
        memory.add(f"Fact {n}: bread number {n} is baked for {n} hours.", user_id="alice", source="doc", id=f"f{n}")
    return memory


@pytest.mark.parametrize("max_tokens", [40, 80, 160, 320, 2_000])
def test_the_budget_is_never_exceeded_and_the_question_never_cut(known, max_tokens):
    made = known.prompt(
        "How long is bread baked?", user_id="alice", history=TURNS, system="Be brief.", max_tokens=max_tokens
    )
    assert made.tokens <= max_tokens
    assert made.tokens == known._kit.tokens.count(made.text)
    assert made.text.startswith("Be brief.")
    assert made.text.endswith("How long is bread baked?")


def test_headroom_is_kept_free(known):
    made = known.prompt("bread?", user_id="alice", history=TURNS, max_tokens=400, budget=PromptBudget(headroom=300))
    assert made.tokens <= 100


def test_the_last_turns_are_verbatim_and_older_ones_in_brief(known):
    made = known.prompt("How long is bread baked?", user_id="alice", history=TURNS[:10])
    assert [(turn.speaker, turn.text) for turn in made.turns] == TURNS[6:10]
    assert all(text in made.text for _, text in TURNS[6:10])
    assert made.summary
    assert "[1] " in made.facts


def test_its_size_levels_off_over_a_hundred_turns(known):
    sizes = [
        known.prompt("How long is bread baked?", user_id="alice", history=TURNS[:n], max_tokens=600).tokens
        for n in (10, 20, 50, 100)
    ]
    assert max(sizes) - min(sizes) < 60


def test_any_usual_form_of_a_turn_will_do(known):
    forms = [["Hi.", "Hello."], [("user", "Hi."), ("assistant", "Hello.")],
             [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]]  # fmt: skip
    turns = [known.prompt("bread?", user_id="alice", history=form).turns for form in forms]
    assert turns == [(Turn(speaker="user", text="Hi."), Turn(speaker="assistant", text="Hello."))] * 3


@pytest.mark.parametrize("history", ["Hi.", [3], [("user",)], [{"role": "user"}], [("user", "")], [None]])
def test_what_is_no_turn_is_named(known, history):
    with pytest.raises(ValidationError):
        known.prompt("bread?", user_id="alice", history=history)


def test_what_can_not_fit_is_said(known):
    with pytest.raises(ConfigurationError, match="system text and question take"):
        known.prompt("bread? " * 50, user_id="alice", max_tokens=20)


def test_of_two_that_conflict_only_the_winner_stands_in_it(memory, clock):
    from datetime import timedelta

    memory.add("The shop on the corner opens at 9 in the morning.", user_id="alice", source="doc")
    clock.advance(timedelta(hours=1))
    memory.add("The shop on the corner opens at 10 in the morning.", user_id="alice", source="doc")
    memory.maintain()
    made = memory.prompt("When does the shop on the corner open?", user_id="alice")
    assert "10 in the morning" in made.text
    assert "9 in the morning" not in made.text


def test_a_fact_of_several_lines_goes_whole_or_not_at_all(memory):
    """And what is left is numbered as in the recall."""
    for n in range(4):
        memory.add(f"Tomatoes, bed {n}:\nsun and\nwater", user_id="alice", source="doc", policy_class="factual")
    whole = memory.prompt("What do tomatoes need?", user_id="alice", max_tokens=2_000)
    assert whole.facts == whole.recall.text
    for most in range(40, whole.tokens):
        made = memory.prompt("What do tomatoes need?", user_id="alice", max_tokens=most, budget=PromptBudget(facts_share=1.0))
        assert made.facts.count("sun and") == made.facts.count("water") == made.facts.count("bed")
        assert made.left_out["facts"] == len(made.recall.passages) - made.facts.count("bed")
