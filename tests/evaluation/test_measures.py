"""Measures, computed by hand on a few questions."""

import math

import numpy as np
import pytest

from meve.evaluation import Evidence, GoldSentence, Question, QuestionOutcome, SystemOutput
from meve.evaluation.measures import MEASURES, Measure, SetMeasure
from meve.evaluation.measures.answers import contains_answer, normalize_answer
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


def make_output(*passages, ranked=None, sufficient=None, probabilities=None, tokens=7):
    return SystemOutput(
        passages=tuple(Evidence(id=i, text=text) for i, text in passages),
        ranked=tuple(i for i, _ in passages) if ranked is None else ranked,
        text="\n\n".join(text for _, text in passages),
        tokens=tokens,
        sufficient=sufficient,
        probabilities=probabilities or {},
    )


def make_outcome(output, ms=1.0, error="", question=QUESTION):
    return QuestionOutcome(question_id=question.id, output=output, ms=ms, error=error)


def value(name, output, question=QUESTION):
    return MEASURES[name].values([(question, make_outcome(output, question=question))])[0]


def total(name, judged):
    """Return a set measure of judged questions."""
    measure = MEASURES[name]
    return measure.total([measure.contribution(*each) for each in judged])


A = ("a", "The tower.\nIt is   330 m high.")
B = ("b", "In Paris.")
X = ("x", "It was 324 m high.")


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        ("supporting recall", make_output(A, X), 0.5),
        ("supporting recall", make_output(A, B, X), 1.0),
        ("supporting precision", make_output(A, X), 0.5),
        ("any gold", make_output(A, X), 1.0),
        ("any gold", make_output(X), 0.0),
        ("all gold", make_output(A, X), 0.0),
        ("all gold", make_output(B, A), 1.0),
        ("sentence recall", make_output(A, X), 0.5),
        ("sentence recall", make_output(("a", "It is 330 m.")), 0.0),
        ("fact recovery", make_output(A, B), 1.0),
        ("answer in context", make_output(A), 1.0),
        ("answer in context", make_output(("z", "It is 3330 m high")), 0.0),
        ("context token recall", make_output(("z", "It is 330 feet")), 0.5),
        ("wrong answer in context", make_output(X), 1.0),
        ("wrong answer in context", make_output(A), 0.0),
        ("tokens", make_output(A, tokens=12), 12.0),
        ("passages", make_output(A, X), 2.0),
        ("empty", make_output(A), 0.0),
        ("MRR@10", make_output(X, A), 0.5),
        ("recall@5", make_output(X, A), 0.5),
        ("recall@20", make_output(X, ranked=("x", "b", "a")), 1.0),
        (
            "NDCG@10",
            make_output(X, A, B),
            (1 / math.log2(3) + 2 / math.log2(4)) / (2 / math.log2(2) + 1 / math.log2(3)),
        ),
        ("proxy: derived from context", make_output(("z", "A tower. Not it.")), 1.0),
        ("proxy: potentially relevant", make_output(("z", "A tower. How high? Eiffel.")), 0.0),
        ("proxy: potentially relevant", make_output(("z", "A high Eiffel.")), 1.0),
    ],
)
def test_measure_equals_value_computed_by_hand(name, output, expected):
    assert value(name, output) == pytest.approx(expected)


@pytest.mark.parametrize("name", [n for n, m in MEASURES.items() if isinstance(m, Measure)])
def test_empty_prompt_gets_worst_value(name):
    result = value(name, EMPTY_OUTPUT)
    assert result == (1.0 if name == "empty" else 0.0)


@pytest.mark.parametrize("name", ["MRR@10", "recall@5", "recall@20", "NDCG@10", "supporting recall"])
def test_empty_ranking_counts_as_zero(name):
    measure = MEASURES[name]
    other = Question(id="other", text="?", gold={"a": 1})
    values = measure.values(
        [(QUESTION, make_outcome(make_output(A, B))), (other, make_outcome(EMPTY_OUTPUT, question=other))]
    )
    assert values[1] == 0.0
    assert values[0] > 0.0


def test_questions_without_gold_are_left_out():
    bare = Question(id="n", text="Who?", answerable=False)
    for name in ("supporting recall", "supporting precision", "all gold", "MRR@10", "answer in context"):
        assert value(name, make_output(A), bare) is None


@pytest.mark.parametrize("answer", ["yes", "No."])
def test_yes_and_no_are_not_searched_in_text(answer):
    question = Question(id="n", text="Is it?", gold={"a": 1}, answers=(answer,))
    assert value("answer in context", make_output(("a", "yes and no")), question) is None


def sufficiency(name, *pairs):
    """Return the measure for pairs (answerable, sufficient)."""
    judged = [
        (
            Question(id=str(n), text="?", gold={"a": 1} if answerable else {}, answerable=answerable),
            make_outcome(make_output(A, sufficient=sufficient)),
        )
        for n, (answerable, sufficient) in enumerate(pairs)
    ]
    return total(name, judged)


def test_decision_measures_equal_values_computed_by_hand():
    pairs = [(True, True), (True, True), (True, False), (False, True), (False, False)]
    assert sufficiency("answering precision", *pairs) == pytest.approx(2 / 3)
    assert sufficiency("answering recall", *pairs) == pytest.approx(2 / 3)
    assert sufficiency("abstention precision", *pairs) == pytest.approx(1 / 2)
    assert sufficiency("abstention recall", *pairs) == pytest.approx(1 / 2)


def test_n_counts_only_contributing_questions():
    recall, answering = MEASURES["abstention recall"], MEASURES["answering precision"]
    contributions = [
        recall.contribution(
            Question(id=str(n), text="?", answerable=n > 2), make_outcome(make_output(A, sufficient=n % 2 == 0))
        )
        for n in range(30)
    ]
    assert (recall.count(contributions), answering.count(contributions)) == (3, 15)
    assert set_measure_interval(recall, contributions, seed=1).n == 3
    difference = set_measure_difference(recall, contributions, [(a, 1.0 - b) for a, b in contributions], seed=1)
    assert difference.n == 3
    assert not difference.excludes_zero


def test_system_without_sufficiency_answers_whenever_it_has_text():
    assert sufficiency("abstention recall", (True, None), (False, None)) == 0.0


def test_raised_question_counts_as_neither_answer_nor_abstention():
    judged = [
        (Question(id=str(n), text="?", answerable=answerable), make_outcome(EMPTY_OUTPUT, error="boom"))
        for n, answerable in enumerate((1, 0))
    ]
    for name in ("answering precision", "answering recall", "abstention precision", "abstention recall"):
        assert total(name, judged) == 0.0


def test_gold_measures_leave_out_unanswerable_questions():
    question = Question(id="n", text="?", gold={"a": 1}, answerable=False)
    for name in ("supporting recall", "all gold", "MRR@10", "NDCG@10", "fact recovery"):
        assert value(name, make_output(A), question) is None


def test_duplicate_passage_lowers_precision():
    assert value("supporting precision", make_output(A, A)) == 0.5


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("Mr O’Brien came.", "O'Brien", True),
        ("from 1914–1918", "1914-1918", True),
        ("It cost $5.", "5", True),
        ("the Café", "cafe", False),
    ],
)
def test_answers_are_compared_without_punctuation(text, answer, expected):
    assert contains_answer(normalize_answer(text), answer) is expected


def test_decision_measures_need_both_kinds_of_questions():
    assert sufficiency("answering precision", (True, True), (True, False)) is None


def test_calibration_error_includes_rejected_passages():
    confident = make_outcome(make_output(A, probabilities={"a": 0.9, "x": 0.9}))
    assert total("calibration error", [(QUESTION, confident)]) == pytest.approx(0.4)
    assert total("calibration error", [(QUESTION, make_outcome(make_output(A)))]) is None


def test_latency_leaves_out_raised_questions():
    times = [(QUESTION, make_outcome(make_output(A), ms=ms)) for ms in (10, 20, 30)]
    times.append((QUESTION, make_outcome(EMPTY_OUTPUT, ms=0.01, error="boom")))
    assert total("p50 ms", times) == 20
    assert total("p95 ms", times) == pytest.approx(np.percentile([10, 20, 30], 95))


def test_every_measure_has_meaning_and_source():
    for name, measure in MEASURES.items():
        assert measure.name == name
        assert isinstance(measure, Measure | SetMeasure)
        assert len(measure.meaning) > 15
        assert len(measure.source) > 15
