"""Comparison of results: changes beyond chance, drops first."""

from dataclasses import replace

import pytest

from meve.errors import EvaluationError
from meve.evaluation import Evidence, Question, QuestionOutcome, SystemOutput
from meve.evaluation._comparison import changed_settings, find_changes
from meve.evaluation.measures import MEASURES
from meve.evaluation.results import Cell, Failure, Results, compute_cells, compute_differences, set_measure_interval
from meve.evaluation.statistics import mean_interval


def make_cell(values, measure="supporting recall", system="full"):
    same = {f"q{n}": float(v) for n, v in enumerate(values)}
    return Cell(
        set="s", system=system, measure=measure, interval=mean_interval(list(same.values()), seed=0), values=same
    )


def make_results(*cells, failures=(), fingerprint="same"):
    return Results(
        experiment="quality",
        settings={"seed": 0},
        sets={"s": {"fingerprint": fingerprint}},
        cells=cells,
        failures=failures,
    )


OLD = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1] * 5


def changes_to(values, measure="supporting recall"):
    """Return the changes from the old values of a measure to these."""
    return find_changes(make_results(make_cell(OLD, measure)), make_results(make_cell(values, measure)))


def test_equal_results_have_no_changes():
    assert changes_to(OLD) == []


def test_drop_in_every_question_is_worse():
    (change,) = changes_to([v * 0.5 for v in OLD])
    assert (change.kind, change.is_drop) == ("worse", True)
    assert change.high < 0


def test_more_recall_is_better_and_more_tokens_are_worse():
    for measure, kind in (("supporting recall", "better"), ("tokens", "worse"), ("passages", "moved")):
        assert changes_to([v + 0.5 for v in OLD], measure)[0].kind == kind


def test_change_of_one_in_fifty_is_not_reported():
    assert changes_to([0, *OLD[1:]]) == []


def test_different_questions_are_compared_by_intervals():
    assert changes_to([1.0] * 200)[0].kind == "better"
    assert changes_to([*OLD, 1, 0]) == []


def make_decision_cell(values):
    """Return answering recall, with two unanswerable questions so that it applies."""
    parts = {f"q{n}": (1.0, float(v)) for n, v in enumerate(values)} | {"x1": (0.0, 1.0), "x2": (0.0, 0.0)}
    changes = set_measure_interval(MEASURES["answering recall"], list(parts.values()), seed=0)
    return Cell(set="s", system="full", measure="answering recall", interval=changes, parts=parts)


def test_set_measures_are_compared_in_pairs():
    old, new = (
        make_decision_cell(OLD),
        make_decision_cell([1 if n in (1, 4, 8, 11, 14, 18) else v for n, v in enumerate(OLD)]),
    )
    assert new.interval.low < old.interval.high
    (change,) = find_changes(make_results(old), make_results(new))
    assert (change.measure, change.kind) == ("answering recall", "better")
    assert change.low > 0
    assert find_changes(make_results(old), make_results(make_decision_cell(OLD))) == []


def test_set_measures_of_different_questions_are_compared_by_intervals():
    other = make_decision_cell([1] * 80)
    assert find_changes(make_results(make_decision_cell(OLD)), make_results(other))[0].kind == "better"


def test_missing_system_is_one_change():
    old = make_results(make_cell(OLD, system="bm25"), make_cell(OLD, "all gold", system="bm25"), make_cell(OLD))
    (change,) = find_changes(old, make_results(make_cell(OLD)))
    assert (change.system, change.kind, change.measure) == ("bm25", "gone", "all of them")


def test_tokens_of_two_tokenizers_are_not_compared():
    old = replace(make_results(make_cell(OLD, "tokens")), settings={"tokens": "gpt2", "seed": 0})
    new = replace(make_results(make_cell([v + 9 for v in OLD], "tokens")), settings={"tokens": "WordPiece", "seed": 0})
    assert find_changes(old, new) == []
    assert changed_settings(old, new) == ["tokens"]


def test_missing_systems_and_new_failures_are_drops():
    failure = Failure(set="s", system="full", question="q1", error="boom")
    changes = find_changes(
        make_results(make_cell(OLD), make_cell(OLD, system="bm25")), make_results(make_cell(OLD), failures=(failure,))
    )
    assert {change.kind for change in changes} == {"gone", "failing"}
    assert all(change.is_drop for change in changes)
    same = make_results(make_cell(OLD), failures=(failure,))
    assert find_changes(same, same) == []


def test_milliseconds_are_not_compared():
    assert changes_to([v + 9 for v in OLD], "p50 ms") == []


def test_drops_come_first():
    old = make_results(make_cell(OLD, "all gold"), make_cell(OLD, "supporting recall"))
    new = make_results(
        make_cell([v + 1 for v in OLD], "all gold"), make_cell([v - 1 for v in OLD], "supporting recall")
    )
    assert [change.kind for change in find_changes(old, new)] == ["worse", "better"]


def test_other_data_or_experiment_is_rejected():
    with pytest.raises(EvaluationError, match="isn't the same"):
        find_changes(make_results(make_cell(OLD)), make_results(make_cell(OLD), fingerprint="other"))
    with pytest.raises(EvaluationError, match="'paper'"):
        find_changes(make_results(make_cell(OLD)), replace(make_results(make_cell(OLD)), experiment="paper"))


def test_results_without_common_sets_are_rejected():
    other = replace(make_results(make_cell(OLD)), sets={"t": {"fingerprint": "x"}})
    with pytest.raises(EvaluationError, match="the old results have s, the new ones t"):
        find_changes(make_results(make_cell(OLD)), other)


def test_speed_results_are_rejected(tmp_path):
    (tmp_path / "results.json").write_text('{"experiment": "speed", "measured": []}')
    with pytest.raises(EvaluationError, match="can't be compared"):
        Results.load(tmp_path / "results.json")


def test_differences_use_shared_questions():
    def judged(values):
        for n, value in enumerate(values):
            changes = (Evidence(id="a", text="a"),) if value else ()
            output = SystemOutput(passages=changes, ranked=(), text="", tokens=0, sufficient=bool(value))
            question = Question(id=f"q{n}", text="?", gold={"a": 1}, answerable=n % 4 > 0)
            yield question, QuestionOutcome(question_id=f"q{n}", output=output, ms=1.0)

    answers = {"full": list(judged(OLD)), "peer": list(judged([1] * 20))}
    cells = [cell for system, each in answers.items() for cell in compute_cells("s", system, each, seed=0)]
    changes = compute_differences(cells, "full", seed=0)
    intervals = {d.measure: d.interval for d in changes}
    answerable = [v for n, v in enumerate(OLD[:20]) if n % 4 > 0]
    assert intervals["supporting recall"].n == len(answerable)
    assert intervals["supporting recall"].value == pytest.approx(1 - sum(answerable) / len(answerable))
    assert intervals["answering recall"].value == pytest.approx(intervals["supporting recall"].value)
    assert intervals["abstention recall"].value < 0
    assert intervals["abstention recall"].high <= 0


def test_saved_results_load_unchanged(tmp_path):
    file = tmp_path / "results.json"
    saved = make_results(
        make_cell(OLD), make_decision_cell(OLD), failures=(Failure(set="s", system="full", question="q", error="é"),)
    )
    saved.save(file)
    assert Results.load(file) == saved


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 2}'])
def test_invalid_results_file_is_rejected(tmp_path, text):
    file = tmp_path / "results.json"
    file.write_text(text)
    with pytest.raises(EvaluationError):
        Results.load(file)
    with pytest.raises(EvaluationError, match="can't be read"):
        Results.load(tmp_path / "none.json")
