"""What an answer made of what was recalled for it: short answers too."""

import pytest

SUN, WATER = "Tomatoes need 6-8 hours of sun.", "Tomatoes need water in the evening."
OSLO, BERGEN = "The ferry to Oslo leaves at 9:45.", "The ferry to Bergen leaves at 9:45."
CASES = {
    "one word": ([SUN], "What needs 8 hours of sun?", "Tomatoes.", ["used"]),
    "a number": ([OSLO], "When does the ferry to Oslo leave?", "9:45.", ["used"]),
    "of two that hold it the one that was asked for": (
        [OSLO, BERGEN], "When does the ferry to Oslo leave?", "At 9:45.", ["used", "unused"],
    ),
    "what all hold": ([SUN, WATER], "What needs 8 hours of sun?", "Tomatoes.", ["used", "unused"]),
    "a word that none holds": ([SUN], "What needs 8 hours of sun?", "Basil.", ["unused"]),
    "agreement": ([SUN], "Do tomatoes need 6-8 hours of sun?", "Yes.", ["unused"]),
    "nothing but the question": ([SUN], "Is it sun or shade?", "Sun.", ["unused"]),
    "a denial": ([SUN], "What needs 8 hours of sun?", "Not tomatoes.", ["contradicted"]),
    "a memory of something else": ([WATER], "Which fruit is red?", "Tomatoes.", ["unused"]),
    "more than it holds": ([SUN], "What needs 8 hours of sun?", "Tomatoes and lavender.", ["unused"]),
    "another value alone": ([OSLO], "When does the ferry to Oslo leave?", "7:15.", ["contradicted"]),
    "another value, of two": (
        [OSLO, BERGEN], "When does the ferry to Oslo leave?", "At 7:15.", ["contradicted", "unused"],
    ),
    "another name alone": (["Ann lives in Bergen."], "Where does Ann live?", "Oslo.", ["contradicted"]),
    "a remark": (["My cat is called Tom."], "What is my cat called?", "Pets are lovely.", ["unused"]),
    "advice": (["My cat is called Tom."], "What is my cat called?", "Ask a vet about it.", ["unused"]),
    "another value, of what nobody asked for": ([OSLO], "How many seats has the bus?", "12.", ["unused"]),
    "another value": ([OSLO], "When does the ferry to Oslo leave?", "The ferry leaves at 7:15.", ["contradicted"]),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "query", "answer", "outcomes"), CASES.values(), ids=CASES)
def test_a_short_answer_was_made_of_the_memory_that_holds_it(memory, texts, query, answer, outcomes):
    kit = memory._kit
    judged = kit.usage.judge(query, answer, texts, kit.embedder.embed_passages(texts))
    assert [j.outcome for j in judged] == outcomes


def test_a_memory_that_says_something_else_by_now_is_not_judged_by_what_it_said(memory):
    memory.add(SUN, user_id="alice", id="t", source="doc")
    recall = memory.search("What needs 8 hours of sun?", user_id="alice")
    memory.update("t", user_id="alice", text="Bread is baked at noon.")
    done = memory.reflect(recall, answer="Tomatoes.")
    assert (done.verdicts["t"].outcome, done.scores) == ("used", {})
    assert memory.get("t", user_id="alice").reflection == 50
