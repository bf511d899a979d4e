"""Measures: each computed by hand on a few questions, and what becomes of those without a result."""

import math

import numpy as np
import pytest

from meve.evaluation import Evidence, GoldSentence, SystemOutput, Outcome, Question
from meve.evaluation._answer_matching import contains_answer, normalize_answer
from meve.evaluation.measures import MEASURES, Measure, SetMeasure
from meve.evaluation.results import set_measure_difference, set_measure_interval

QUESTION = Question(
    id="q",
    text="How high is the Eiffel Tower?",
    gold={"a": 1, "b": 2},
    sentences=(GoldSentence(passage_id="a", text="It is 330 m high."), GoldSentence(passage_id="b", text="In Paris.")),
    answers=("330 m", "330 metres"),
    misleading=("324 m",),
)
EMPTY_OUTPUT = SystemOutput(passages=(), ranked=(), text="", tokens=0)


def output(*passages, ranked=None, sufficient=None, judged=None, tokens=7):
    """From pairs (id, text)."""
    return SystemOutput(
        passages=tuple(Evidence(id=i, text=text) for i, text in passages),
        ranked=tuple(i for i, _ in passages) if ranked is None else ranked,
        text="\n\n".join(text for _, text in passages),
        tokens=tokens,
        sufficient=sufficient,
        judged=judged or {},
    )


def outcome(made, ms=1.0, error="", question=QUESTION):
    return Outcome(question_id=question.id, output=made, ms=ms, error=error)


def value(name, made, question=QUESTION):
    measure = MEASURES[name]
    if isinstance(measure, Measure):
        return measure.values([(question, outcome(made, question=question))])[0]
    return measure.value([(question, outcome(made, question=question))])


A = ("a", "The tower.\nIt is   330 m high.")
B = ("b", "In Paris.")
X = ("x", "It was 324 m high.")


@pytest.mark.parametrize(
    ("name", "made", "wanted"),
    [
        ("supporting recall", handed(A, X), 0.5),
        ("supporting recall", handed(A, B, X), 1.0),
        ("supporting precision", handed(A, X), 0.5),
        ("any gold", handed(A, X), 1.0),
        ("any gold", handed(X), 0.0),
        ("all gold", handed(A, X), 0.0),
        ("all gold", handed(B, A), 1.0),
        ("sentence recall", handed(A, X), 0.5),
        ("sentence recall", handed(("a", "It is 330 m.")), 0.0),
        ("fact recovery", handed(A, B), 1.0),
        ("answer in context", handed(A), 1.0),
        ("answer in context", handed(("z", "It is 3330 m high")), 0.0),
        ("context token recall", handed(("z", "It is 330 feet")), 0.5),
        ("wrong answer in context", handed(X), 1.0),
        ("wrong answer in context", handed(A), 0.0),
        ("tokens", handed(A, tokens=12), 12.0),
        ("passages", handed(A, X), 2.0),
        ("empty", handed(A), 0.0),
        ("MRR@10", handed(X, A), 0.5),
        ("recall@5", handed(X, A), 0.5),
        ("recall@20", handed(X, ranked=("x", "b", "a")), 1.0),
        ("NDCG@10", handed(X, A, B), (1 / math.log2(3) + 2 / math.log2(4)) / (2 / math.log2(2) + 1 / math.log2(3))),
        ("proxy: derived from context", handed(("z", "A tower. Not it.")), 1.0),
        ("proxy: potentially relevant", handed(("z", "A tower. How high? Eiffel.")), 0.0),
        ("proxy: potentially relevant", handed(("z", "A high Eiffel.")), 1.0),
    ],
)
def test_value(name, made, wanted):
    assert value(name, made) == pytest.approx(wanted)


@pytest.mark.parametrize("name", [n for n, m in MEASURES.items() if isinstance(m, Measure)])
def test_a_question_without_a_result_counts(name):
    """An empty prompt has a value, the worst one, wherever the question has what the measure asks for."""
    got = value(name, EMPTY_OUTPUT)
    assert got == (1.0 if name == "empty" else 0.0)


@pytest.mark.parametrize("name", ["MRR@10", "recall@5", "recall@20", "NDCG@10", "supporting recall"])
def test_one_empty_ranking_among_others_pulls_the_mean_down(name):
    measure = MEASURES[name]
    other = Question(id="other", text="?", gold={"a": 1})
    values = measure.values([(QUESTION, outcome(handed(A, B))), (other, outcome(EMPTY_OUTPUT, question=other))])
    assert values[1] == 0.0
    assert values[0] > 0.0


def test_measures_that_need_gold_leave_out_questions_without():
    bare = Question(id="n", text="Who?", answerable=False)
    for name in ("supporting recall", "supporting precision", "all gold", "MRR@10", "answer in context"):
        assert value(name, handed(A), bare) is None


@pytest.mark.parametrize("answer", ["yes", "No."])
def test_yes_and_no_are_not_looked_for_in_the_text(answer):
    question = Question(id="n", text="Is it?", gold={"a": 1}, answers=(answer,))
    assert value("answer in context", handed(("a", "yes and no")), question) is None


def sufficiency(name, *pairs):
    """From pairs (answerable, says sufficient)."""
    judged = [
        (
            Question(id=str(n), text="?", gold={"a": 1} if can else {}, answerable=can),
            outcome(handed(A, sufficient=says)),
        )
        for n, (can, says) in enumerate(pairs)
    ]
    return MEASURES[name].value(judged)


def test_sufficiency_by_hand():
    pairs = [(True, True), (True, True), (True, False), (False, True), (False, False)]
    assert sufficiency("answering precision", *pairs) == pytest.approx(2 / 3)
    assert sufficiency("answering recall", *pairs) == pytest.approx(2 / 3)
    assert sufficiency("abstention precision", *pairs) == pytest.approx(1 / 2)
    assert sufficiency("abstention recall", *pairs) == pytest.approx(1 / 2)


def test_questions_without_a_say_are_not_counted():
    """Of thirty, three can't be answered: abstention recall is of three, whatever surely seems to differ."""
    recall, answered = MEASURES["abstention recall"], MEASURES["answering precision"]
    parts = [
        recall.part(Question(id=str(n), text="?", answerable=n > 2), outcome(handed(A, sufficient=n % 2 == 0)))
        for n in range(30)
    ]
    assert (recall.count(parts), answered.count(parts)) == (3, 15)
    assert set_measure_interval(recall, parts, seed=1).n == 3
    found = set_measure_difference(recall, parts, [(a, 1.0 - b) for a, b in parts], seed=1)
    assert found.n == 3
    assert not found.excludes_zero


def test_a_system_that_does_not_say_answers_whenever_it_has_text():
    assert sufficiency("abstention recall", (True, None), (False, None)) == 0.0


def test_a_system_that_raised_neither_answered_nor_abstained():
    """Otherwise the one that always raises would be the best at keeping silent."""
    judged = [
        (Question(id=str(n), text="?", answerable=can), outcome(EMPTY_OUTPUT, error="boom")) for n, can in enumerate((1, 0))
    ]
    for name in ("answering precision", "answering recall", "abstention precision", "abstention recall"):
        assert MEASURES[name].value(judged) == 0.0


def test_half_of_what_is_needed_is_no_success_where_the_rest_is_missing():
    question = Question(id="n", text="?", gold={"a": 1}, answerable=False)
    for name in ("supporting recall", "all gold", "MRR@10", "NDCG@10", "fact recovery"):
        assert value(name, handed(A), question) is None


def test_a_second_copy_is_no_supporting_passage():
    assert value("supporting precision", handed(A, A)) == 0.5


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [
        ("Mr O’Brien came.", "O'Brien", True),
        ("from 1914–1918", "1914-1918", True),
        ("It cost $5.", "5", True),
        ("the Café", "cafe", False),
    ],
)
def test_answers_are_compared_without_punctuation_of_any_kind(text, answer, there):
    assert contains_answer(normalize_answer(text), answer) is there


def test_sufficiency_needs_both_kinds_of_questions():
    assert sufficiency("answering precision", (True, True), (True, False)) is None


def test_calibration_error_counts_what_was_turned_down():
    sure = outcome(handed(A, judged={"a": 0.9, "x": 0.9}))
    assert MEASURES["calibration error"].value([(QUESTION, sure)]) == pytest.approx(0.4)
    assert MEASURES["calibration error"].value([(QUESTION, outcome(handed(A)))]) is None


def test_latency_leaves_out_what_raised():
    times = [(QUESTION, outcome(handed(A), ms=ms)) for ms in (10, 20, 30)]
    times.append((QUESTION, outcome(EMPTY_OUTPUT, ms=0.01, error="boom")))
    assert MEASURES["p50 ms"].value(times) == 20
    assert MEASURES["p95 ms"].value(times) == pytest.approx(np.percentile([10, 20, 30], 95))


def test_every_measure_says_what_it_means():
    for name, measure in MEASURES.items():
        assert measure.name == name
        assert isinstance(measure, Measure | SetMeasure)
        assert len(measure.meaning) > 15
        assert len(measure.source) > 15
