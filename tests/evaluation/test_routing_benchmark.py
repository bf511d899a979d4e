"""The routing experiment, on small data."""

import gzip
import json
from datetime import UTC, datetime
from itertools import islice, pairwise
from types import SimpleNamespace

import pytest

from benchmarks import routing_answers
from meve.errors import ConfigurationError, DatasetError
from meve.evaluation._journal import ROWS
from meve.evaluation.experiments.memory.memory_results import Figure, MemoryResults
from meve.evaluation.experiments.routing import scores
from meve.evaluation.experiments.routing.cases import (
    TIER_OF,
    RoutingCase,
    read_locomo_cases,
    read_longmemeval_cases,
)
from meve.evaluation.experiments.routing.experiment import BUDGETS, RoutingOptions, run_routing, sample_cases
from meve.evaluation.experiments.routing.longbench import read_longbench_cases
from meve.evaluation.experiments.routing.scores import Scores
from meve.evaluation.experiments.routing.systems import FIXED, ROUTED, holds_evidence
from meve.evaluation.report import routing_report
from meve.evaluation.statistics import Interval, clustered_interval
from meve.memory._recall.memory_passage import MemoryPassage
from meve.routing import Tier
from recipes.routing import sufficiency

SYSTEMS = (routing_answers.ROUTER, routing_answers.FLAT, routing_answers.LATEST)
TOPICS = ("the red kite", "the oak table", "the piano", "the harbour", "the old mill", "the ginger cat")


def write_lines(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture
def data(tmp_path):
    """Write two conversations, in which Ann says one thing about each topic, and seven questions about the first."""
    conversations, questions = [], []
    for c in range(2):
        turns = [
            {"dia_id": f"D1:{n}", "speaker": "Ann" if n % 2 else "Bob", "text": f"Last week I painted {topic} blue."}
            for n, topic in enumerate(TOPICS, start=1)
        ]
        session = {"session_id": 1, "date_time": "", "timestamp": "2023-05-08T13:56:00", "turns": turns}
        conversations.append({"conversation_id": f"c{c}", "speakers": ["Ann", "Bob"], "sessions": [session]})
    labels = [
        (4, "single_hop", ["D1:1"], {}),
        (4, "single_hop", ["D1:2"], {"audit": {"error_type": "WRONG_CITATION", "correct_evidence": ["D1:3"]}}),
        (4, "single_hop", ["D1:3"], {"audit": {"error_type": "ATTRIBUTION_ERROR", "correct_evidence": ["D1:3"]}}),
        (4, "single_hop", ["D1:4"], {"evidence_unresolved": ["D9:9"]}),
        (1, "multi_hop", ["D1:1", "D1:5"], {}),
        (2, "temporal", ["D1:6"], {}),
        (5, "adversarial", ["D1:2"], {"adversarial_answer": "green"}),
    ]
    for c in range(2):
        for n, (category, name, evidence, more) in enumerate(labels):
            about = " and ".join(TOPICS[int(id[3:]) - 1] for id in evidence)
            questions.append(
                {
                    "id": f"c{c}-q{n}", "conversation_id": f"c{c}", "question": f"Who painted {about} blue?",
                    "answer": "Ann", "category": category, "category_name": name, "evidence": evidence, **more,
                }
            )  # fmt: skip
    write_lines(tmp_path / "locomo" / "conversations.jsonl", conversations)
    write_lines(tmp_path / "locomo" / "questions.jsonl", questions)
    return tmp_path


def test_audit_corrects_evidence_and_leaves_out_false_premises(data):
    cases = {case.id: case for case in read_locomo_cases(data).cases}
    assert cases["c0-q1"].evidence == {"D1:3"}
    assert cases["c0-q1"].answers == ()
    assert "c0-q2" not in cases
    assert "c0-q3" not in cases
    assert (cases["c0-q0"].answers, cases["c0-q0"].tier) == (("Ann",), Tier.TARGETED)
    assert (cases["c0-q6"].evidence, cases["c0-q6"].answers, cases["c0-q6"].tier) == (frozenset(), (), None)


def test_halves_share_no_conversation_and_questions_come_after_it(data):
    cases = read_locomo_cases(data).cases
    assert {case.half: case.unit for case in cases} == {"tuning": "c0", "table": "c1"}
    assert all(case.at > datetime(2023, 5, 8, 13, 56, tzinfo=UTC) for case in cases)


def test_every_question_type_with_an_answer_has_a_tier(data):
    assert {case.type for case in read_locomo_cases(data).cases if case.evidence} <= TIER_OF.keys()


def test_longmemeval_questions_know_their_date_evidence_and_user(tmp_path):
    folder = tmp_path / "longmemeval"
    turn = {"id": "t1", "user_id": "u1", "session_date": "2023/05/20 (Sat) 11:17", "role": "assistant",
            "content": "Try the harbour."}  # fmt: skip
    question = {"id": "q1", "user_id": "u1", "question_type": "single-session-assistant", "abstention": False,
                "question": "Where?", "question_date": "2023/05/30 (Tue) 23:40", "answer": "harbour",
                "evidence_turn_ids": ["t1"]}  # fmt: skip
    unknown = {**question, "id": "q2", "user_id": "u2", "abstention": True, "evidence_turn_ids": []}
    write_lines(folder / "evidence_turns.jsonl", [turn])
    write_lines(folder / "questions.jsonl", [question, unknown])
    sessions = [{"session_id": "s1", "date": "2023/05/20 (Sat) 11:17", "turns": [{"role": "user", "content": "Hi."}]}]
    (folder / "conversations.jsonl.gz").write_bytes(gzip.compress(json.dumps({"sessions": sessions}).encode()))
    dataset = read_longmemeval_cases(tmp_path)
    assert [(c.evidence, c.unit, c.at.day) for c in dataset.cases] == [({"t1"}, "u1", 30), (frozenset(), "u2", 30)]
    assert {turn.text: turn.source for turns in dataset.turns.values() for turn in turns} == {
        "Try the harbour.": "chat_assistant", "Hi.": "chat_user",
    }  # fmt: skip


PASSAGES = "\n".join(
    f"Passage {n}:\nTown {n}\nIt lies by the sea. " + "\n\n".join(f"Fact {n}.{m} is known." for m in range(6))
    for n in range(1, 5)
)


@pytest.mark.parametrize(
    ("answer", "number"), [("Fact 2.3", 1), ("known", 0), ("yes", 0), ("FACT 3.1", 1), ("Fact 9", 0)]
)
def test_longbench_memories_with_a_rare_answer_are_evidence(tmp_path, answer, number):
    prompt = (
        f"Answer it.\n\nThe following are given passages.\n{PASSAGES}\n\nAnswer the question based on the given "
        "passages.\n\nQuestion: Which fact?\nAnswer:"
    )
    folder = tmp_path / "longbench_mini"
    folder.mkdir()
    rows = [{"id": "a", "task": "hotpotqa", "prompt": prompt, "gold": [answer]},
            {"id": "b", "task": "gov_report", "prompt": "Summarise this.", "gold": ["Fact"]}]  # fmt: skip
    (folder / "tasks.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    dataset = read_longbench_cases(tmp_path)
    assert len(dataset.cases) == number
    for case in dataset.cases:
        assert (case.text, case.tier, case.one_suffices) == ("Which fact?", Tier.DEEP, True)
        (text,) = [turn.text for turn in dataset.turns["a"] if turn.id in case.evidence]
        assert text.startswith(f"Town {answer[5]}: ")


def make_case(*, one_suffices=False):
    return RoutingCase(
        id="q", user="u", unit="u", half="table", type="hotpotqa", text="Where?", answers=("the old harbour",),
        evidence=frozenset({"a", "b"}), one_suffices=one_suffices, at=datetime(2026, 5, 1, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(("one_suffices", "value"), [(True, 1.0), (False, 0.0)])
def test_one_of_several_memories_with_the_answer_suffices(one_suffices, value):
    outcome = SimpleNamespace(ids=("a",), output=SimpleNamespace(tokens=5))
    scores = Scores("half", [make_case(one_suffices=one_suffices)], lambda *_: outcome, seed=1)
    scores.score_evidence(["router @ 500"])
    assert scores.figures[0].interval.value == value


@pytest.mark.parametrize(
    ("shortened", "holds"), [("… To the old harbour. …", True), ("… To the harbour. …", False), ("Hello. …", False)]
)
def test_shortened_turn_is_evidence_only_with_all_words_of_the_answer(static_memory, shortened, holds):
    record = static_memory.add("Hello. To the old harbour. Bye.", user_id="u")
    passage = MemoryPassage(id=record.id, text=record.text, record=record)
    assert holds_evidence(make_case(), passage)
    assert holds_evidence(make_case(), passage.with_text(shortened)) is holds


def test_smaller_sample_is_the_beginning_of_a_larger_one(data):
    cases = read_locomo_cases(data).cases
    one, two = sample_cases(cases, 1, 42), sample_cases(cases, 2, 42)
    assert [case.half for case in two] == ["table", "table", "tuning", "tuning"]
    assert [case.id for case in one] == [two[0].id, two[2].id]


def test_intervals_draw_whole_histories():
    values, clusters = [1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"]
    both = clustered_interval(values, clusters, seed=1)
    assert (both.value, both.low, both.high, both.n) == (0.5, 0.0, 1.0, 4)
    one = clustered_interval(values, ["a"] * 4, seed=1)
    assert (one.low, one.high) == (0.5, 0.5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the results of a run, and its options."""
    folder = tmp_path_factory.mktemp("routing")
    data.__wrapped__(folder)
    options = RoutingOptions(
        data=folder, to=folder / "run", cache=folder / "cache", sets=("locomo",), embedder="static"
    )
    return run_routing(options), options


def test_figures_hold_recall_tokens_routes_and_abstention(finished):
    results, _ = finished
    evidence = "locomo, table half: all evidence"
    assert results.value(evidence, "router", "all evidence @ 500").value == 1.0
    assert results.value(evidence, "flat bm25", "all evidence @ 2000").value == 1.0
    assert results.value(evidence, ROUTED, "all evidence @ own").n == 4
    for figure in results.of("locomo, table half: tokens"):
        limit = figure.measure.partition("@ ")[2]
        assert limit == "own" or figure.interval.value <= int(limit)
    routes = "locomo, table half: routes"
    assert results.value(routes, "adversarial, no answer", "deep").n == 1
    frequencies = [results.value(routes, "all types", tier).value for tier in Tier]
    assert sum(frequencies) == pytest.approx(1.0)
    assert {c.system for c in results.curves} >= {"no answer in the memory", "answerable"}


def test_full_history_holds_all_evidence_and_all_tokens_of_the_user(finished):
    results, _ = finished
    half = "locomo, table half"
    assert results.value(f"{half}: all evidence", "full history", "all evidence @ own").value == 1.0
    shown = results.value(f"{half}: tokens", "full history", "tokens @ own").value
    assert shown == results.value(f"{half}: tokens", "history, newest", "tokens @ 2000").value


def test_fixed_tiers_are_measured_at_equal_and_at_own_budgets(finished):
    results, _ = finished
    for system in FIXED:
        for budget in ("500", "own"):
            assert results.value("locomo, table half: tokens", system, f"tokens @ {budget}").value > 0


def test_finished_run_is_not_asked_again(finished):
    results, options = finished
    rows = (options.to / ROWS).read_bytes()
    assert run_routing(options).figures == results.figures
    assert (options.to / ROWS).read_bytes() == rows


def test_report_shows_every_table_and_survives_saving(finished, tmp_path):
    pytest.importorskip("matplotlib")
    results, _ = finished
    file = routing_report.write(results, tmp_path, "meve bench routing")
    text = file.read_text()
    assert all(name in text for name in results.experiments)
    assert (tmp_path / routing_report.TYPES_PICTURE).stat().st_size > 0
    assert MemoryResults.load(tmp_path / "results.json") == results


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [({"sets": ("nothing",)}, ConfigurationError, "unknown set 'nothing'"), ({}, DatasetError, "locomo")],
)
def test_unknown_or_absent_set_is_refused(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        run_routing(RoutingOptions(data=tmp_path, to=tmp_path / "run", cache=tmp_path / "cache", **options))


def draw_tokens(monkeypatch, tmp_path):
    """Draw two small sets, and return the axes of both pictures."""
    drawn = []
    monkeypatch.setattr(routing_report, "save_figure", lambda figure, file: (drawn.append(figure), file)[1])
    figures = []
    for name in ("locomo, table half", "longmemeval, table half"):
        for type in ("knowledge-update", "temporal-reasoning", "single-session-preference"):
            for measure in (scores.OWN_TOKENS, scores.OWN_RECALL, scores.FLAT_RECALL):
                figures.append(make_figure(f"{name}: {scores.TYPES}", type, measure))
        for system in ("router", "memory.search", "benchmarks.peers.mem0_memory:mem0_routing"):
            for budget in (*BUDGETS, "own"):
                figures.append(make_figure(f"{name}: {scores.EVIDENCE}", system, f"{scores.ALL} @ {budget}"))
                figures.append(
                    make_figure(
                        f"{name}: {scores.TOKENS}",
                        system,
                        f"{scores.TOKENS} @ {budget}",
                        600.0 if budget == "own" else float(budget),
                    )
                )
    routing_report.draw(MemoryResults(experiment="routing", settings={}, figures=tuple(figures), curves=()), tmp_path)
    for figure in drawn:
        figure.canvas.draw()
    return [figure.axes for figure in drawn]


def make_figure(experiment, system, measure, value=0.5):
    interval = Interval(value=value, low=value, high=value, n=1)
    return Figure(experiment=experiment, system=system, measure=measure, interval=interval, share=False)


def test_pictures_have_no_overlapping_ticks_nor_lines_between_question_types(monkeypatch, tmp_path):
    types, tokens = draw_tokens(monkeypatch, tmp_path)
    for axis in (*types[:2], *tokens):
        labels = [label for label in axis.get_xticklabels(which="both") if label.get_text() and label.get_visible()]
        if axis is tokens[0]:
            assert [label.get_text() for label in labels] == [f"{budget:,}" for budget in BUDGETS]
        assert {label.get_horizontalalignment() for label in labels} <= {"right", "center"}
        boxes = [label.get_window_extent() for label in labels if not label.get_rotation()]
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
    assert {line.get_linestyle() for axis in types for line in axis.get_lines()} == {"None"}
    assert {label.get_horizontalalignment() for axis in types[:2] for label in axis.get_xticklabels()} == {"right"}


def test_pictures_name_peers_without_their_import_path(monkeypatch, tmp_path):
    _, tokens = draw_tokens(monkeypatch, tmp_path)
    assert [text.get_text() for text in tokens[0].get_legend().get_texts()] == [
        "router",
        "memory.search",
        "mem0_memory:mem0_routing",
    ]
    assert {len(line.get_xdata()) for line in tokens[0].get_lines()} == {len(BUDGETS)}


def test_interrupted_measurement_of_own_cases_resumes(monkeypatch, tmp_path, static_memory):
    static_memory.add("I live in Prague.", user_id="user", source="chat_user")
    asked = ("Where do I live?", "Where does Bo live?", "What is my name?")
    world = {"cases": [["short", question, "Prague", True] for question in asked[:2]], "unanswerable": [asked[2]]}
    monkeypatch.setattr(sufficiency, "open_worlds", lambda _: iter([(static_memory, world), (static_memory, world)]))
    first = list(islice(sufficiency.read_samples("tuning", tmp_path, tmp_path, [sufficiency.OWN]), 4))
    again = list(sufficiency.read_samples("tuning", tmp_path, tmp_path, [sufficiency.OWN]))
    assert [(s.unit, s.id) for s in again] == [(unit, question) for unit in ("own-0", "own-1") for question in asked]
    assert [sample.id for sample in first] == [sample.id for sample in again[:4]]


def test_answers_of_a_model_are_measured_and_an_interrupted_run_asks_nothing_twice(data, monkeypatch, tmp_path, capsys):
    prompts = []
    monkeypatch.setattr(routing_answers, "_load", lambda _: lambda prompt: prompts.append(prompt) or "Bob painted it.")
    given = f" --data {data} --llm m --to {tmp_path / 'to'} --sets locomo --questions 4"
    monkeypatch.setattr("sys.argv", given.split(" "))
    routing_answers.main()
    rows = [json.loads(line) for line in (tmp_path / "to" / "locomo.jsonl").read_text().splitlines()]
    assert [row["system"] for row in rows] == [*SYSTEMS] * 4
    assert [bool(row["gold"]) for row in rows[::3]] == [True, True, True, False]
    assert all(row["tokens"] <= rows[place - place % 3]["tokens"] for place, row in enumerate(rows) if place % 3 == 1)
    assert capsys.readouterr().out.count("locomo, ") == 3
    asked = len(prompts)
    routing_answers.main()
    assert len(prompts) == asked > 0


@pytest.mark.parametrize(
    ("answer", "gold", "value"), [("the red kite", "A kite", 2 / 3), ("Oslo", "Rome", 0.0), ("Oslo.", "oslo", 1.0)]
)
def test_token_f1_is_of_normalized_words(answer, gold, value):
    assert routing_answers.token_f1(answer, gold) == pytest.approx(value)
