"""The conversations written for the verifier's training hold what their records claim."""

import json
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from recipes.verifier.conversations import examples, read_conversations, read_corpora
from recipes.verifier.splits import part_of

ROOT = Path(__file__).parents[2]
CONVERSATIONS = [conversation for _, conversation in read_conversations()]


def _words(text):
    return " ".join(re.findall(r"\w+", text.lower()))


def _turns(conversation):
    return [text for session in conversation["sessions"] for _, text in session["turns"]]


def _asked(conversation):
    return [*conversation["questions"], *conversation["unanswered"]]


def _holds(passage, turn):
    return re.search(rf"(?:^|[ >]){re.escape(turn)}$", passage, re.MULTILINE)


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each["title"])
def test_answers_and_near_turns_stand_in_the_conversation(conversation):
    session = [n for n, each in enumerate(conversation["sessions"]) for _ in each["turns"]]
    assert 8 <= len(session) <= 40
    assert len(conversation["questions"]) >= 10
    assert len(conversation["unanswered"]) >= 3
    assert all(question["answers"] for question in conversation["questions"])
    for question in _asked(conversation):
        assert len(question["q"]) == 2
        read = set()
        for answer in question.get("answers", ()):
            assert 0 <= answer["from"] <= answer["turn"] < len(session)
            assert session[answer["from"]] == session[answer["turn"]]
            read.update(range(answer["from"], answer["turn"] + 1))
        assert all(0 <= at < len(session) and at not in read for at in question["near"])


def test_a_third_of_the_answers_need_a_turn_before():
    answers = [a for each in CONVERSATIONS for question in each["questions"] for a in question["answers"]]
    assert sum(a["from"] < a["turn"] for a in answers) >= len(answers) / 3


def test_nothing_is_written_twice():
    titles = Counter(each["title"] for each in CONVERSATIONS)
    turns = Counter(text for each in CONVERSATIONS for text in map(_words, _turns(each)) if len(text.split()) > 8)
    assert [text for counts in (titles, turns) for text, count in counts.items() if count > 1] == []
    for each in CONVERSATIONS:
        asked = Counter(_words(q) for question in _asked(each) for q in question["q"])
        assert [text for text, count in asked.items() if count > 1] == [], each["title"]


def test_no_question_is_asked_by_a_benchmark():
    files = chain((ROOT / "benchmarks").rglob("*.json*"), (ROOT / "core" / "meve").rglob("*.jsonl"))
    strings = {_words(json.loads(s)) for f in files for s in re.findall(r'"(?:[^"\\]|\\.)*"', f.read_text("utf-8"))}
    asked = [_words(q) for each in CONVERSATIONS for question in _asked(each) for q in question["q"]]
    assert strings
    assert [text for text in asked if text in strings] == []


def test_about_a_tenth_is_held_out():
    parts = Counter(part_of("conversations", each["title"]) for each in CONVERSATIONS)
    assert set(parts) == {"train", "dev", "test"}
    assert 0.04 <= 1 - parts["train"] / parts.total() <= 0.16


def test_corpora_are_the_held_out_conversations_with_the_turns_that_answer():
    held_out = [each for each in CONVERSATIONS if part_of("conversations", each["title"]) == "dev"]
    corpora = list(read_corpora())
    assert [len(passages) for passages, _ in corpora] == [len(_turns(each)) for each in held_out]
    for (passages, asked), each in zip(corpora, held_out, strict=True):
        texts = {passage.id: passage.text for passage in passages}
        answers = [q["answers"] for q in each["questions"] for _ in q["q"]]
        for (_, gold), expected in zip(asked, answers, strict=True):
            turns = [_turns(each)[answer["turn"]] for answer in expected]
            assert len(gold) == len({answer["turn"] for answer in expected})
            assert all(any(texts[i].endswith(turn) for i in gold) for turn in turns)


def test_a_passage_is_relevant_if_it_holds_a_turn_that_answers_and_what_it_needs():
    answers = {}
    for each in CONVERSATIONS:
        turns = _turns(each)
        for question in _asked(each):
            needed = [turns[a["from"] : a["turn"] + 1] for a in question.get("answers", ())]
            for query in question["q"]:
                answers.setdefault(query, []).append(needed)
    counts = Counter()
    for example in examples(1):
        assert any(
            any(all(_holds(example.passage, text) for text in needed) for needed in every) == example.relevant
            for every in answers[example.query]
        ), example
        counts[example.relevant] += 1
    assert 0.4 <= counts[True] / counts.total() <= 0.6
