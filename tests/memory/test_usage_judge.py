"""Verdicts on whether an answer used each recalled memory."""

from dataclasses import replace

import pytest

from meve.memory._contradiction import statements

SUN, WATER = "Tomatoes need 6-8 hours of sun.", "Tomatoes need water in the evening."
OSLO, BERGEN = "The ferry to Oslo leaves at 9:45.", "The ferry to Bergen leaves at 9:45."
LYON, CATS = "I live in Lyon.", "I have two cats."
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
    **{
        f"the same after {opening!r}": ([LYON], "Where do I live?", f"{opening} Lyon.", ["used"])
        for opening in ("Sure! You live in", "Of course:", "Great question!", "Yes,", "Okay.", "Hello! It's")
    },
    **{
        f"not after {opening!r}": ([LYON], "Where do I live?", f"{opening} you live in Paris.", ["contradicted"])
        for opening in ("Sure!", "Of course,", "Great question!", "Yes,")
    },
    "a paraphrase": (["I have no car."], "How do I get to the lake?", "Without a car, take tram 4.", ["used"]),
    "a supposition": ([LYON], "Where could I live?", "If you lived in Paris, the rent would double.", ["unmentioned"]),
    "a question": ([LYON], "Where do I live?", "You live in Paris?", ["unmentioned"]),
    "the right value among others": (
        [CATS], "How many cats do I have?", "You have 2 cats, and 3 when mine visits.", ["used"],
    ),
    "a pronoun": (["My travelcard is valid until 30 September."], "Which card?", "The valid one.", ["unmentioned"]),
    "somebody else": ([LYON], "Where does my mother live?", "Your mother lives in Paris.", ["unmentioned"]),
    "the same time in another form": (
        ["The ferry to Oslo leaves at 7:15."], "When does the ferry to Oslo leave?", "At 07:15.", ["used"],
    ),
    "the same amount in another form": (["My rent is 1500 euros."], "How much is my rent?", "1.5k euros.", ["used"]),
    "another time in words": (
        ["The ferry to Oslo leaves at 7:15."], "When does the ferry leave?", "At quarter to eight.", ["contradicted"],
    ),
    "another amount": (["My rent is 900 euros."], "How much is my rent a year?", "10,800 euros.", ["used"]),
    "another value in words": ([CATS], "How many cats do I have?", "Three.", ["contradicted"]),
    "another value": ([OSLO], "When does the ferry to Oslo leave?", "The ferry leaves at 7:15.", ["contradicted"]),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "query", "answer", "outcomes"), CASES.values(), ids=CASES)
def test_answer_gives_each_memory_its_outcome(static_memory, texts, query, answer, outcomes):
    runtime = static_memory._runtime
    verdicts = runtime.usage.judge(query, answer, texts, runtime.embedder.embed_passages(texts))
    assert [verdict.outcome for verdict in verdicts] == outcomes


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        ("My flight leaves at 18:00.", "Your flight leaves at 6."),
        ("My flight leaves at 18:00.", "At six."),
        ("My flight leaves at 6 pm.", "Your flight leaves tonight at 6, gate 12."),
        ("My flight leaves at midnight.", "Your flight leaves at 12."),
        ("My flight leaves at 22:00.", "Your flight leaves at 10 o'clock tonight."),
        ("My flight leaves on Tuesday.", "Your flight leaves tomorrow."),
        ("My flight is 12 km long.", "Your flight is about 7.5 miles long."),
        ("My flight lasts 90 days.", "Your flight lasts 3 months."),
        ("My flight weighs 80 kg.", "Your flight weighs 176 pounds."),
        ("My flight costs 900 euros.", "Your flight costs 10,800 euros a year."),
        ("My flight costs 900 euros.", "Your flight costs 900 a month, so 10800 a year."),
        ("My flight costs 900 euros a month.", "Your flight costs 11,000 euros a year."),
        ("My flight costs 897 euros.", "Your flight costs about 900 euros."),
        ("My flight costs 900 euros.", "Your flight costs 900, plus 20 for a bag."),
    ],
)
def test_same_value_in_other_words_contradicts_nothing(static_memory, fact, answer):
    assert judge_answer(static_memory, fact, answer) != "contradicted"


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        ("My flight leaves at 18:00.", "Your flight leaves at 6 am."),
        ("My flight leaves at 7 am.", "Your flight leaves at 7 pm."),
        ("My flight leaves at 18:00.", "Your flight leaves at 7."),
        ("My flight leaves on Tuesday.", "Your flight leaves on Friday."),
        ("My flight is 12 km long.", "Your flight is about 12 miles long."),
        ("My flight weighs 80 kg.", "Your flight weighs 80 pounds."),
        ("My flight costs 900 euros a month.", "Your flight costs 950 euros a month."),
        ("My flight costs 900 euros.", "Your flight costs 950 euros a month."),
        ("My flight costs 897 euros.", "Your flight costs 900 euros."),
    ],
)
def test_another_value_contradicts(static_memory, fact, answer):
    assert judge_answer(static_memory, fact, answer) == "contradicted"


def judge_answer(memory, fact, answer):
    runtime = memory._runtime
    (verdict,) = runtime.usage.judge(
        "When does my flight leave?", answer, [fact], runtime.embedder.embed_passages([fact])
    )
    return verdict.outcome


def test_memory_changed_since_the_recall_keeps_its_score(memory):
    memory.add(SUN, user_id="alice", id="t", source="doc")
    recall = memory.search("What needs 8 hours of sun?", user_id="alice")
    memory.update("t", user_id="alice", text="Bread is baked at noon.")
    result = memory.reflect(recall, answer="Tomatoes.")
    assert (result.verdicts["t"].outcome, result.scores) == ("used", {})
    assert memory.get("t", user_id="alice").reflection == 50


class CountingEmbedder:
    def __init__(self, embedder):
        self.embedder, self.sentences = embedder, []

    def embed_passages(self, texts):
        self.sentences += texts
        return self.embedder.embed_passages(texts)


def test_long_answer_embeds_a_bounded_number_of_sentences(static_memory):
    runtime = static_memory._runtime
    counting = CountingEmbedder(runtime.embedder)
    judge = replace(runtime.usage, embedder=counting)
    filler = [f"Sheep number {n} jumps." for n in range(500)]
    answer = " ".join([*filler, "Your home is in Lyon.", *filler])
    vectors = runtime.embedder.embed_passages([LYON])
    (verdict,) = judge.judge("Where do I live?", answer, [LYON], vectors)
    assert len(counting.sentences) == 100
    assert "Your home is in Lyon." in counting.sentences
    assert verdict.outcome == "used"


def test_long_answer_parses_a_memory_once(static_memory, monkeypatch):
    runtime, parsed = static_memory._runtime, []
    monkeypatch.setattr(statements, "normalise_values", lambda text: parsed.append(text) or text)
    answer = " ".join(f"Sheep {n} jumps at 7." for n in range(90))
    runtime.usage.judge("Which sheep?", answer, [CATS, OSLO], runtime.embedder.embed_passages([CATS, OSLO]))
    assert parsed.count(CATS) <= 3
