"""The gardening scenario of the paper: four sessions, with the scores that it gives."""

from datetime import timedelta

import pytest


def scores(memory, *ids):
    return [memory.get(i, user_id="alice").reflection for i in ids]


def ids(recall):
    return [r.id for r in recall.records]


def test_four_sessions_of_gardening(memory, clock):
    """Scores rise with use and fall without, turns expire, and a memory of cooking never shows up."""
    add = dict(user_id="alice", source="doc", policy_class="canonical")
    memory.add("Tomatoes grow best with 6-8 hours of direct sun a day.", id="A", tags=["gardening"], **add)
    memory.add("Tomatoes want deep watering 2-3 times a week.", id="B", tags=["gardening"], **add)
    memory.add("To grow tomatoes, plant them in soil warmer than 18 °C.", id="C", tags=["gardening"], **add)
    memory.add("Yellow leaves come from too much watering or a lack of nutrients.", id="D", tags=["gardening"], **add)
    memory.add("Compost and sand improve the drainage of heavy soil.", id="E", tags=["gardening"], **add)
    memory.add("A carbonara needs eggs, guanciale and pecorino.", id="K", tags=["cooking"], **add)

    first = memory.search("How do I grow tomatoes?", user_id="alice", tags=["gardening"], limit=3)
    assert sorted(ids(first)) == ["A", "B", "C"]
    memory.add("How do I grow tomatoes?", user_id="alice", source="chat_user", id="turn")
    said = "Give them 6-8 hours of direct sun a day, and deep watering 2-3 times a week."
    memory.reflect(first, answer=said)
    assert scores(memory, "A", "B", "C") == [60, 60, 45]

    clock.advance(timedelta(days=1))
    second = memory.search("How often should I be watering?", user_id="alice", tags=["gardening"], limit=1)
    assert ids(second) == ["B"]
    memory.reflect(second, answer="Deep watering 2-3 times a week.")
    assert scores(memory, "B") == [70]

    clock.advance(timedelta(days=7))
    with pytest.raises(LookupError):
        memory.get("turn", user_id="alice")
    third = memory.search("Yellow leaves: is it the watering?", user_id="alice", tags=["gardening"], limit=2)
    assert sorted(ids(third)) == ["B", "D"]
    memory.reflect(third, answer="Yellow leaves come from too much watering: deep watering 2-3 times a week will do.")
    assert scores(memory, "D", "B") == [60, 75]

    history = [
        ("user", "My leaves turn yellow."),
        ("assistant", "Too much watering, or a lack of nutrients."),
        ("user", "I'll water less."),
        ("assistant", "Good: 2-3 times a week."),
    ]
    made = memory.prompt("How do I improve drainage of my soil?", user_id="alice", history=history, limit=1)
    assert ids(made.recall) == ["E"]
    assert all(text in made.text for _, text in history)
    assert scores(memory, "A", "B", "C", "D") == [60, 75, 45, 60]
    for query in ("How do I grow tomatoes?", "watering", "soil", "yellow leaves"):
        assert "K" not in ids(memory.search(query, user_id="alice", limit=None, max_tokens=2_000))


def test_of_two_in_conflict_the_newer_is_recalled_until_an_answer_contradicts_it(memory, clock):
    """Another name and another number are another subject; the same name and another number, a contradiction."""
    say = dict(user_id="alice", source="doc", policy_class="factual")
    memory.add("The ferry to Oslo leaves at 9:45.", id="oslo", **say)
    memory.add("The ferry to Bergen leaves at 7:45.", id="bergen", **say)
    clock.advance(timedelta(days=1))
    memory.add("The ferry to Oslo leaves at 7:15.", id="false", **say)
    recall = memory.search("When does the ferry to Oslo leave?", user_id="alice")
    assert sorted(ids(recall)) == ["bergen", "false"]
    [out] = [each for each in recall.trace.candidates if each.fate == "dropped"]
    assert (out.id, out.reason) == ("oslo", "contradicted_by:false")
    done = memory.reflect(recall, answer="The ferry to Oslo leaves at 9:45.")
    assert done.verdicts["false"].outcome == "contradicted"
    assert done.verdicts["bergen"].outcome != "contradicted"
    assert memory.get("bergen", user_id="alice").flagged == ""
    assert sorted(ids(memory.search("When does the ferry to Oslo leave?", user_id="alice"))) == ["bergen", "oslo"]


@pytest.mark.parametrize("places", ["abc", "acb", "bac", "bca", "cab", "cba"])
@pytest.mark.parametrize("asked", ["How many cats do I have?", "Is it true that I have 3 cats?"])
def test_what_was_said_changed_and_said_again_is_true_again(memory, clock, places, asked):
    """Whichever of the two that say the same ranks higher; and upkeep finds the same."""
    for place, text in zip(places, ["I have 3 cats.", "I have 4 cats.", "I have 3 cats."], strict=True):
        memory.add(text, user_id="alice", policy_class="factual", id=place)
        clock.advance(timedelta(hours=1))
    for _ in range(2):
        assert [r.text for r in memory.search(asked, user_id="alice").records] == ["I have 3 cats."]
        memory.maintain()


def test_what_a_policy_protects_yields_to_no_newer_statement(memory, clock):
    memory.add_shared("The office opens at 9 on Mondays.", id="rule")
    clock.advance(timedelta(days=1))
    memory.add("The office opens at 10 on Mondays.", id="mine", user_id="alice", source="doc", policy_class="factual")
    assert ids(memory.search("When does the office open?", user_id="alice")) == ["rule"]
    memory.add("The office opens at 11 on Mondays.", id="own", user_id="alice", source="doc", policy_class="canonical")
    assert ids(memory.search("When does the office open?", user_id="alice")) == ["own"]
