"""The paper's gardening scenario: four sessions with the expected scores."""

from datetime import timedelta

import pytest

from meve.memory import GovernedMemory, Policy
from tests.memories import KEY


def get_scores(memory, *record_ids):
    return [memory.get(i, user_id="alice").reflection for i in record_ids]


def list_ids(recall):
    return [r.id for r in recall.records]


@pytest.fixture
def memory(file, clock):
    with GovernedMemory.open(file, policy=Policy.paper(), clock=clock, audit_key=KEY, embedder="static") as opened:
        yield opened


def test_four_sessions_of_gardening(memory, clock):
    add = dict(user_id="alice", source="doc", policy_class="canonical")
    memory.add("Tomatoes grow best with 6-8 hours of direct sun a day.", id="A", tags=["gardening"], **add)
    memory.add("Tomatoes want deep watering 2-3 times a week.", id="B", tags=["gardening"], **add)
    memory.add("To grow tomatoes, plant them in soil warmer than 18 °C.", id="C", tags=["gardening"], **add)
    memory.add("Yellow leaves come from too much watering or a lack of nutrients.", id="D", tags=["gardening"], **add)
    memory.add("Compost and sand improve the drainage of heavy soil.", id="E", tags=["gardening"], **add)
    memory.add("A carbonara needs eggs, guanciale and pecorino.", id="K", tags=["cooking"], **add)

    first = memory.search("How do I grow tomatoes?", user_id="alice", tags=["gardening"], limit=3)
    assert sorted(list_ids(first)) == ["A", "B", "C"]
    memory.add("How do I grow tomatoes?", user_id="alice", source="chat_user", id="turn")
    answer = "Give them 6-8 hours of direct sun a day, and deep watering 2-3 times a week."
    memory.reflect(first, answer=answer)
    assert get_scores(memory, "A", "B", "C") == [60, 60, 45]

    clock.advance(timedelta(days=1))
    second = memory.search("How often should I be watering?", user_id="alice", tags=["gardening"], limit=1)
    assert list_ids(second) == ["B"]
    memory.reflect(second, answer="Deep watering 2-3 times a week.")
    assert get_scores(memory, "B") == [70]

    clock.advance(timedelta(days=7))
    with pytest.raises(LookupError):
        memory.get("turn", user_id="alice")
    third = memory.search("Yellow leaves: is it the watering?", user_id="alice", tags=["gardening"], limit=2)
    assert sorted(list_ids(third)) == ["B", "D"]
    memory.reflect(third, answer="Yellow leaves come from too much watering: deep watering 2-3 times a week will do.")
    assert get_scores(memory, "D", "B") == [60, 75]

    history = [
        ("user", "My leaves turn yellow."),
        ("assistant", "Too much watering, or a lack of nutrients."),
        ("user", "I'll water less."),
        ("assistant", "Good: 2-3 times a week."),
    ]
    prompt = memory.prompt("How do I improve drainage of my soil?", user_id="alice", history=history, limit=1)
    assert list_ids(prompt.recall) == ["E"]
    assert all(text in prompt.text for _, text in history)
    assert get_scores(memory, "A", "B", "C", "D") == [60, 75, 45, 60]
    for query in ("How do I grow tomatoes?", "watering", "soil", "yellow leaves"):
        assert "K" not in list_ids(memory.search(query, user_id="alice", limit=None, max_tokens=2_000))


def test_newer_of_two_conflicting_records_is_recalled_until_contradicted(memory, clock):
    """The same name with another number is a contradiction; another name is another subject."""
    fact = dict(user_id="alice", source="doc", policy_class="factual")
    memory.add("The ferry to Oslo leaves at 9:45.", id="oslo", **fact)
    memory.add("The ferry to Bergen leaves at 7:45.", id="bergen", **fact)
    clock.advance(timedelta(days=1))
    memory.add("The ferry to Oslo leaves at 7:15.", id="false", **fact)
    recall = memory.search("When does the ferry to Oslo leave?", user_id="alice")
    assert sorted(list_ids(recall)) == ["bergen", "false"]
    [dropped] = [each for each in recall.trace.candidates if each.fate == "dropped"]
    assert (dropped.id, dropped.reason) == ("oslo", "contradicted_by:false")
    reflection = memory.reflect(recall, answer="The ferry to Oslo leaves at 9:45.")
    assert reflection.verdicts["false"].outcome == "contradicted"
    assert reflection.verdicts["bergen"].outcome != "contradicted"
    assert memory.get("bergen", user_id="alice").flagged == ""
    assert sorted(list_ids(memory.search("When does the ferry to Oslo leave?", user_id="alice"))) == ["bergen", "oslo"]


@pytest.mark.parametrize("record_ids", ["abc", "acb", "bac", "bca", "cab", "cba"])
@pytest.mark.parametrize("question", ["How many cats do I have?", "Is it true that I have 3 cats?"])
def test_repeated_statement_prevails_over_an_earlier_contradiction(memory, clock, record_ids, question):
    for record_id, text in zip(record_ids, ["I have 3 cats.", "I have 4 cats.", "I have 3 cats."], strict=True):
        memory.add(text, user_id="alice", policy_class="factual", id=record_id)
        clock.advance(timedelta(hours=1))
    for _ in range(2):
        assert [r.text for r in memory.search(question, user_id="alice").records] == ["I have 3 cats."]
        memory.maintain()


def test_protected_record_prevails_over_newer_unprotected_one(memory, clock):
    memory.add_shared("The office opens at 9 on Mondays.", id="rule")
    clock.advance(timedelta(days=1))
    memory.add("The office opens at 10 on Mondays.", id="mine", user_id="alice", source="doc", policy_class="factual")
    assert list_ids(memory.search("When does the office open?", user_id="alice")) == ["rule"]
    memory.add("The office opens at 11 on Mondays.", id="own", user_id="alice", source="doc", policy_class="canonical")
    assert list_ids(memory.search("When does the office open?", user_id="alice")) == ["own"]
