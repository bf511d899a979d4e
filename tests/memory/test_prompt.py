"""Prompts: budget, verbatim turns, summary of older turns, and size over a long conversation."""

import pytest

from meve.errors import ConfigurationError, ValidationError
from meve.memory import PromptBudget, Turn
from tests.memories import add_old_and_new

TURNS = [("user" if n % 2 == 0 else "assistant", f"This is turn {n}, on bread and water.") for n in range(100)]


@pytest.fixture
def filled(memory):
    for n in range(10):
        memory.add(f"Fact {n}: bread number {n} is baked for {n} hours.", user_id="alice", source="doc", id=f"f{n}")
    return memory


@pytest.mark.parametrize("max_tokens", [40, 80, 160, 320, 2_000])
def test_prompt_keeps_its_budget_and_the_whole_question(filled, max_tokens):
    prompt = filled.prompt(
        "How long is bread baked?", user_id="alice", history=TURNS, system="Be brief.", max_tokens=max_tokens
    )
    assert prompt.tokens <= max_tokens
    assert prompt.tokens == filled._runtime.tokens.count(prompt.text)
    assert prompt.text.startswith("Be brief.")
    assert prompt.text.endswith("How long is bread baked?")


def test_headroom_is_kept_free(filled):
    prompt = filled.prompt("bread?", user_id="alice", history=TURNS, max_tokens=400, budget=PromptBudget(headroom=300))
    assert prompt.tokens <= 100


def test_last_turns_are_verbatim_and_older_ones_summarised(filled):
    prompt = filled.prompt("How long is bread baked?", user_id="alice", history=TURNS[:10])
    assert [(turn.speaker, turn.text) for turn in prompt.turns] == TURNS[6:10]
    assert all(text in prompt.text for _, text in TURNS[6:10])
    assert prompt.summary
    assert "[1] " in prompt.facts


def test_prompt_size_levels_off_over_100_turns(filled):
    sizes = [
        filled.prompt("How long is bread baked?", user_id="alice", history=TURNS[:n], max_tokens=600).tokens
        for n in (10, 20, 50, 100)
    ]
    assert max(sizes) - min(sizes) < 60


def test_every_turn_format_is_accepted(filled):
    forms = [["Hi.", "Hello."], [("user", "Hi."), ("assistant", "Hello.")],
             [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]]  # fmt: skip
    turns = [filled.prompt("bread?", user_id="alice", history=form).turns for form in forms]
    assert turns == [(Turn(speaker="user", text="Hi."), Turn(speaker="assistant", text="Hello."))] * 3


@pytest.mark.parametrize("history", ["Hi.", [3], [("user",)], [{"role": "user"}], [("user", "")], [None]])
def test_invalid_history_raises(filled, history):
    with pytest.raises(ValidationError):
        filled.prompt("bread?", user_id="alice", history=history)


def test_question_beyond_the_budget_raises(filled):
    with pytest.raises(ConfigurationError, match="system text and question take"):
        filled.prompt("bread? " * 50, user_id="alice", max_tokens=20)


def test_only_the_prevailing_memory_of_a_conflict_is_included(memory):
    morning = "The shop on the corner opens at {} in the morning."
    add_old_and_new(memory, morning.format(9), morning.format(10))
    memory.maintain()
    prompt = memory.prompt("When does the shop on the corner open?", user_id="alice")
    assert "10 in the morning" in prompt.text
    assert "9 in the morning" not in prompt.text


def test_multiline_fact_is_included_whole_or_not_at_all(memory):
    """And the facts that remain keep their numbers."""
    for n in range(4):
        memory.add(f"Tomatoes, bed {n}:\nsun and\nwater", user_id="alice", source="doc", policy_class="factual")
    whole = memory.prompt("What do tomatoes need?", user_id="alice", max_tokens=2_000)
    assert whole.facts == whole.recall.text
    for most in range(40, whole.tokens):
        prompt = memory.prompt(
            "What do tomatoes need?", user_id="alice", max_tokens=most, budget=PromptBudget(facts_share=1.0)
        )
        assert prompt.facts.count("sun and") == prompt.facts.count("water") == prompt.facts.count("bed")
        assert prompt.left_out["facts"] == len(prompt.recall.passages) - prompt.facts.count("bed")


@pytest.mark.parametrize("budget", [5, {"standing_tokens": 9}, PromptBudget])
def test_budget_of_another_type_is_refused(filled, budget):
    with pytest.raises(ConfigurationError, match="budget must be a PromptBudget"):
        filled.prompt("bread?", user_id="alice", budget=budget)


def test_only_what_the_user_did_not_tell_is_shown_with_its_source(static_memory):
    static_memory.add("I live in Prague.", user_id="alice", source="chat_user")
    static_memory.add("I live in the hut, says the landlord.", user_id="alice", source="doc")
    text = static_memory.search("Where do I live?", user_id="alice").text
    day = f"{static_memory.clock.now():%Y-%m-%d}"
    assert f"{day}:\n[1] I live in Prague." in text
    assert f"{day}, doc:\n[2] I live in the hut" in text
