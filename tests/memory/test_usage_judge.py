"""Verdicts on whether an answer used each recalled memory."""

import pytest

SUN, WATER = "Tomatoes need 6-8 hours of sun.", "Tomatoes need water in the evening."
OSLO, BERGEN = "The ferry to Oslo leaves at 9:45.", "The ferry to Bergen leaves at 9:45."
CASES = {
    "one word": ([SUN], "What needs 8 hours of sun?", "Tomatoes.", ["used"]),
    "a number": ([OSLO], "When does the ferry to Oslo leave?", "9:45.", ["used"]),
    "two memories contain it and one matches the question": (
        [OSLO, BERGEN], "When does the ferry to Oslo leave?", "At 9:45.", ["used", "unmentioned"],
    ),
    "a word of all memories": ([SUN, WATER], "What needs 8 hours of sun?", "Tomatoes.", ["used", "unmentioned"]),
    "a word of no memory": ([SUN], "What needs 8 hours of sun?", "Basil.", ["unmentioned"]),
    "agreement": ([SUN], "Do tomatoes need 6-8 hours of sun?", "Yes.", ["unmentioned"]),
    "a repetition of the question": ([SUN], "Is it sun or shade?", "Sun.", ["unmentioned"]),
    "a denial": ([SUN], "What needs 8 hours of sun?", "Not tomatoes.", ["contradicted"]),
    "a memory of something else": ([WATER], "Which fruit is red?", "Tomatoes.", ["unmentioned"]),
    "more than the memory contains": ([SUN], "What needs 8 hours of sun?", "Tomatoes and lavender.", ["unmentioned"]),
    "another value alone": ([OSLO], "When does the ferry to Oslo leave?", "7:15.", ["contradicted"]),
    "another value, two memories": (
        [OSLO, BERGEN], "When does the ferry to Oslo leave?", "At 7:15.", ["contradicted", "unmentioned"],
    ),
    "another name alone": (["Ann lives in Bergen."], "Where does Ann live?", "Oslo.", ["contradicted"]),
    "a remark": (["My cat is called Tom."], "What is my cat called?", "Pets are lovely.", ["unmentioned"]),
    "advice": (["My cat is called Tom."], "What is my cat called?", "Ask a vet about it.", ["unmentioned"]),
    "another value on another subject": ([OSLO], "How many seats has the bus?", "12.", ["unmentioned"]),
    "another value": ([OSLO], "When does the ferry to Oslo leave?", "The ferry leaves at 7:15.", ["contradicted"]),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "query", "answer", "outcomes"), CASES.values(), ids=CASES)
def test_answer_gives_each_memory_its_outcome(memory, texts, query, answer, outcomes):
    runtime = memory._runtime
    verdicts = runtime.usage.judge(query, answer, texts, runtime.embedder.embed_passages(texts))
    assert [verdict.outcome for verdict in verdicts] == outcomes


def test_memory_changed_since_the_recall_keeps_its_score(memory):
    memory.add(SUN, user_id="alice", id="t", source="doc")
    recall = memory.search("What needs 8 hours of sun?", user_id="alice")
    memory.update("t", user_id="alice", text="Bread is baked at noon.")
    result = memory.reflect(recall, answer="Tomatoes.")
    assert (result.verdicts["t"].outcome, result.scores) == ("used", {})
    assert memory.get("t", user_id="alice").reflection == 50
