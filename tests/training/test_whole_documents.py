"""The whole documents written for the verifier's training hold what their records claim."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from recipes.verifier.pages import draw_passage
from recipes.verifier.splits import part_of
from recipes.verifier.whole_documents import examples, read_documents

ROOT = Path(__file__).parents[2]
DOCUMENTS = [document for _, document in read_documents()]


def _words(text):
    return " ".join(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["title"])
def test_document_holds_its_answers(document):
    passages = document["passages"]
    assert 12 <= len(passages) <= 25
    assert len(document["questions"]) >= 15
    for question in document["questions"]:
        assert len(question["q"]) == 2
        gold = [answer["passage"] for answer in question["answers"]]
        assert gold
        assert not set(gold) & set(question["near"])
        for answer in question["answers"]:
            assert " ".join(answer["text"].lower().split()) in " ".join(passages[answer["passage"]].lower().split())
    for question in (*document["questions"], *document["unanswered"]):
        assert all(0 <= at < len(passages) for at in question["near"])


def test_nothing_is_written_twice():
    titles = Counter(document["title"] for document in DOCUMENTS)
    passages = Counter(_words(passage) for document in DOCUMENTS for passage in document["passages"])
    assert [text for counts in (titles, passages) for text, count in counts.items() if count > 1] == []
    for document in DOCUMENTS:
        asked = Counter(_words(q) for each in (*document["questions"], *document["unanswered"]) for q in each["q"])
        assert [text for text, count in asked.items() if count > 1] == [], document["title"]


def test_no_question_is_asked_by_a_benchmark():
    strings = set()
    for file in (ROOT / "benchmarks").rglob("*.json*"):
        strings |= {_words(json.loads(s)) for s in re.findall(r'"(?:[^"\\]|\\.)*"', file.read_text("utf-8"))}
    asked = [_words(q) for d in DOCUMENTS for each in (*d["questions"], *d["unanswered"]) for q in each["q"]]
    assert strings
    assert [text for text in asked if text in strings] == []


def test_a_document_is_held_out_as_a_whole_and_about_a_tenth_are():
    parts = Counter(part_of("whole_documents", document["title"]) for document in DOCUMENTS)
    assert set(parts) == {"train", "dev", "test"}
    assert 0.05 <= 1 - parts["train"] / parts.total() <= 0.15


def test_examples_are_balanced_and_labelled_by_the_records():
    answers = {}
    for document in DOCUMENTS:
        for question in (*document["questions"], *document["unanswered"]):
            gold = [document["passages"][answer["passage"]] for answer in question.get("answers", ())]
            for query in question["q"]:
                answers.setdefault(query, []).append((document, gold))
    counts = Counter()
    for example in examples(1):
        known = [gold for _, gold in answers[example.query]]
        assert any(any(text in example.passage for text in gold) == example.relevant for gold in known), example
        counts[example.relevant] += 1
    assert 0.4 <= counts[True] / counts.total() <= 0.6


def test_neighbours_that_answer_are_left_out():
    rng, texts = random.Random(1), ["zero", "one", "two", "three", "four"]
    drawn = [draw_passage("title", texts, 2, rng, amid=True, without={0, 3}) for _ in range(200)]
    assert not any(text in passage for passage in drawn for text in ("zero", "three", "four"))
    assert any("one" in passage for passage in drawn)
