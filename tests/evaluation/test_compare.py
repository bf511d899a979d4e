"""What moved: told beyond its interval, drops first, and nothing compared that can't be."""

from dataclasses import replace

import pytest

from meve.errors import EvaluationError
from meve.evaluation import Evidence, Handed, Outcome, Question
from meve.evaluation.compare import changed, moves
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Cell, Failure, Results, differences, total_interval
from meve.evaluation.statistics import mean_interval


def cell(values, measure="supporting recall", system="full"):
    known = {f"q{n}": float(v) for n, v in enumerate(values)}
    return Cell(
        set="s", system=system, measure=measure, interval=mean_interval(list(known.values()), seed=0), values=known
    )


def results(*cells, failures=(), fingerprint="same"):
    return Results(
        experiment="quality",
        settings={"seed": 0},
        sets={"s": {"fingerprint": fingerprint}},
        cells=cells,
        failures=failures,
    )


OLD = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1] * 5


def test_the_same_results_have_not_moved():
    assert moves(results(cell(OLD)), results(cell(OLD))) == []


def test_a_drop_of_every_question_is_a_drop():
    (move,) = moves(results(cell(OLD)), results(cell([v * 0.5 for v in OLD])))
    assert (move.verdict, move.a_drop) == ("worse", True)
    assert move.high < 0


def test_more_recall_is_better_and_more_tokens_are_worse():
    up = [v + 0.5 for v in OLD]
    assert moves(results(cell(OLD)), results(cell(up)))[0].verdict == "better"
    assert moves(results(cell(OLD, "tokens")), results(cell(up, "tokens")))[0].verdict == "worse"
    assert moves(results(cell(OLD, "passages")), results(cell(up, "passages")))[0].verdict == "moved"


def test_one_question_of_fifty_is_within_chance():
    assert moves(results(cell(OLD)), results(cell([0, *OLD[1:]]))) == []


def test_other_questions_are_compared_by_their_intervals():
    longer = [1.0] * 200
    assert moves(results(cell(OLD)), results(cell(longer)))[0].verdict == "better"
    assert moves(results(cell(OLD)), results(cell([*OLD, 1, 0]))) == []


def decided(values):
    """Answering recall of answerable questions with two more that aren't, so that it applies."""
    parts = {f"q{n}": (1.0, float(v)) for n, v in enumerate(values)} | {"x1": (0.0, 1.0), "x2": (0.0, 0.0)}
    found = total_interval(MEASURES["answering recall"], list(parts.values()), seed=0)
    return Cell(set="s", system="full", measure="answering recall", interval=found, parts=parts)


def test_what_only_many_questions_have_is_paired_too():
    """Four of fifty more are sure where no question fares worse; the two intervals alone overlap."""
    old, new = decided(OLD), decided([1 if n in (1, 4, 8, 11, 14, 18) else v for n, v in enumerate(OLD)])
    assert new.interval.low < old.interval.high
    (move,) = moves(results(old), results(new))
    assert (move.measure, move.verdict) == ("answering recall", "better")
    assert move.low > 0
    assert moves(results(old), results(decided(OLD))) == []


def test_set_level_numbers_of_other_questions_are_compared_by_their_intervals():
    other = decided([1] * 80)
    assert moves(results(decided(OLD)), results(other))[0].verdict == "better"


def test_a_system_that_is_gone_is_told_once():
    old = results(cell(OLD, system="bm25"), cell(OLD, "all gold", system="bm25"), cell(OLD))
    (move,) = moves(old, results(cell(OLD)))
    assert (move.system, move.verdict, move.measure) == ("bm25", "gone", "all of them")


def test_tokens_of_two_tokenizers_are_not_compared():
    old = replace(results(cell(OLD, "tokens")), settings={"tokens": "gpt2", "seed": 0})
    new = replace(results(cell([v + 9 for v in OLD], "tokens")), settings={"tokens": "WordPiece", "seed": 0})
    assert moves(old, new) == []
    assert changed(old, new) == ["tokens"]


def test_what_is_gone_and_what_newly_raises_are_drops():
    failure = Failure(set="s", system="full", question="q1", error="boom")
    found = moves(results(cell(OLD), cell(OLD, system="bm25")), results(cell(OLD), failures=(failure,)))
    assert {m.verdict for m in found} == {"gone", "failing"}
    assert all(m.a_drop for m in found)
    known = results(cell(OLD), failures=(failure,))
    assert moves(known, known) == []


def test_milliseconds_count_only_when_asked_for():
    slow, fast = results(cell(OLD, "p50 ms")), results(cell([v + 9 for v in OLD], "p50 ms"))
    assert moves(slow, fast) == []
    assert moves(slow, fast, timings=True)[0].verdict == "worse"


def test_drops_come_first():
    old = results(cell(OLD, "all gold"), cell(OLD, "supporting recall"))
    new = results(cell([v + 1 for v in OLD], "all gold"), cell([v - 1 for v in OLD], "supporting recall"))
    assert [m.verdict for m in moves(old, new)] == ["worse", "better"]


def test_other_data_and_other_experiments_are_refused():
    with pytest.raises(EvaluationError, match="isn't the same"):
        moves(results(cell(OLD)), results(cell(OLD), fingerprint="other"))
    with pytest.raises(EvaluationError, match="'paper'"):
        moves(results(cell(OLD)), replace(results(cell(OLD)), experiment="paper"))


def test_results_without_a_set_in_common_are_refused_by_name():
    other = replace(results(cell(OLD)), sets={"t": {"fingerprint": "x"}})
    with pytest.raises(EvaluationError, match="the one has s, the other t"):
        moves(results(cell(OLD)), other)


def test_milliseconds_of_a_speed_run_are_not_compared(tmp_path):
    (tmp_path / "results.json").write_text('{"experiment": "speed", "measured": []}')
    with pytest.raises(EvaluationError, match="aren't compared"):
        Results.load(tmp_path / "results.json")


def test_differences_are_over_shared_questions():
    def judged(values):
        for n, value in enumerate(values):
            found = (Evidence(id="a", text="a"),) if value else ()
            handed = Handed(passages=found, ranked=(), text="", tokens=0, sufficient=bool(value))
            question = Question(id=f"q{n}", text="?", gold={"a": 1}, answerable=n % 4 > 0)
            yield question, Outcome(question_id=f"q{n}", handed=handed, ms=1.0)

    found = differences("s", {"full": list(judged(OLD)), "peer": list(judged([1] * 20))}, "full", seed=0)
    by = {d.measure: d.interval for d in found}
    answerable = [v for n, v in enumerate(OLD[:20]) if n % 4 > 0]
    assert by["supporting recall"].n == len(answerable)
    assert by["supporting recall"].value == pytest.approx(1 - sum(answerable) / len(answerable))
    assert by["answering recall"].value == pytest.approx(by["supporting recall"].value)
    assert by["abstention recall"].value < 0
    assert by["abstention recall"].high <= 0


def test_results_come_back_from_their_file(tmp_path):
    file = tmp_path / "results.json"
    made = results(cell(OLD), decided(OLD), failures=(Failure(set="s", system="full", question="q", error="é"),))
    made.save(file)
    assert Results.load(file) == made


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 2}'])
def test_a_file_that_is_none_is_refused(tmp_path, text):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(EvaluationError):
        Results.load(file)
    with pytest.raises(EvaluationError, match="can't be read"):
        Results.load(tmp_path / "none.json")
