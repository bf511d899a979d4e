"""Runs over sets: turns, resuming, settings, failures and peers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from types import ModuleType

import pytest

from meve import Passage, RetrieverConfig
from meve.components.verifiers.cosine import CosineVerifier, load_shipped_calibration
from meve.errors import ConfigurationError, EvaluationError
from meve.evaluation import EvaluationSet, Question, SharedComponents
from meve.evaluation import results as results_module
from meve.evaluation._journal import ROWS, SETTINGS, Journal
from meve.evaluation._set_runner import fingerprint_set, run_set, sample_questions
from meve.evaluation.experiments._experiment import RetrievalOptions, run_experiment
from meve.evaluation.experiments._recall_curve import measure_curve
from meve.evaluation.peers import hash_peer_code, load_peer
from meve.evaluation.systems import SYSTEMS, IndexedPassages, pipeline_system
from meve.testing.fakes import CountingEmbedder, OverlapVerifier, WordCounter, WordEmbedder

pytestmark = pytest.mark.usefixtures("few_draws")

TEXTS = ("The moon orbits the earth.", "Bees make honey.", "Rust is iron and oxygen.", "Owls hunt at night.")
COMPONENTS = SharedComponents(
    embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(), config=RetrieverConfig(candidates=3)
)


def make_set(count=4, name="tiny", has_pools=False):
    passages = tuple(Passage(id=f"p{n}", text=text) for n, text in enumerate(TEXTS))
    questions = tuple(
        Question(
            id=f"q{n}",
            text=TEXTS[n % 4],
            gold={f"p{n % 4}": 1},
            pool=(f"p{n % 4}", f"p{(n + 1) % 4}") if has_pools else None,
        )
        for n in range(count)
    )
    return EvaluationSet(name=name, passages=passages, questions=questions)


def with_questions(dataset, **factories):
    return {name: (build, list(dataset.questions)) for name, build in factories.items()}


def counting_factory(calls):
    def build(indexed):
        full = pipeline_system()(indexed)

        def system(question):
            calls[question] += 1
            return full(question)

        return system

    return build


def run(dataset, factories, folder, **settings):
    return run_experiment(
        "quality",
        [dataset],
        lambda s: with_questions(s, **factories),
        COMPONENTS,
        RetrievalOptions(data=folder, to=folder, cache=folder, seed=1),
        settings=settings,
        against="full",
    )


def test_sample_depends_only_on_ids_and_seed():
    questions = make_set(40).questions
    assert sample_questions(questions, 10, 42) == sample_questions(tuple(reversed(questions)), 10, 42)
    assert sample_questions(questions, 10, 42) != sample_questions(questions, 10, 43)
    assert sample_questions(questions, 20, 42)[:10] == sample_questions(questions, 10, 42)
    assert len(sample_questions(questions, None, 42)) == 40


def test_fingerprint_depends_on_every_label():
    one = make_set()
    other = replace(one, questions=(replace(one.questions[0], gold={"p3": 1}), *one.questions[1:]))
    third = replace(one, passages=(replace(one.passages[0], text="Else."), *one.passages[1:]))
    fourth = replace(one, questions=(replace(one.questions[0], misleading=("no",)), *one.questions[1:]))
    assert len({fingerprint_set(s) for s in (one, other, third, fourth)}) == 4


def test_every_system_is_measured(tmp_path):
    results = run(make_set(), SYSTEMS, tmp_path)
    assert results.systems("tiny") == list(SYSTEMS)
    for system in ("full", "bm25", "hybrid", "dense"):
        assert results.value("tiny", system, "any gold").value == 1.0
    assert results.value("tiny", "full", "supporting precision").value == 1.0
    assert results.value("tiny", "dense", "supporting precision").value < 1.0


def test_resumed_run_asks_only_missing_questions(tmp_path):
    first, again = Counter(), Counter()
    dataset = make_set()
    whole = run(dataset, {"full": counting_factory(first)}, tmp_path)
    lines = (tmp_path / ROWS).read_text().splitlines(keepends=True)
    (tmp_path / ROWS).write_text("".join(lines[:2]) + lines[2][: len(lines[2]) // 2])  # killed while it wrote
    resumed = run(dataset, {"full": counting_factory(again)}, tmp_path)
    recorded_ids = {json.loads(line)["question_id"] for line in lines[:2]}
    missing = {q.text for q in dataset.questions if q.id not in recorded_ids}
    assert set(again) == missing
    for one, other in zip(whole.cells, resumed.cells, strict=True):
        assert one.measure.endswith(" ms") or one == other


def test_raised_questions_are_asked_again(tmp_path):
    calls, dataset = Counter(), make_set()

    def broken(indexed):
        full = pipeline_system()(indexed)

        def system(question):
            if question == TEXTS[0]:
                raise RuntimeError("out of order")
            return full(question)

        return system

    assert len(run(dataset, {"full": broken}, tmp_path).failures) == 1
    mended = run(dataset, {"full": counting_factory(calls)}, tmp_path)
    assert not mended.failures
    assert set(calls) == {TEXTS[0]}
    assert mended.value("tiny", "full", "any gold").value == 1.0


def test_changed_peer_code_is_rejected(tmp_path, monkeypatch):
    file = tmp_path / "changing.py"
    file.write_text("def make(passages, parts):\n    return lambda question: passages[:1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = hash_peer_code("changing:make")
    full, out = {"full": pipeline_system()}, tmp_path / "out"
    run(make_set(), full, out, peer_code={"changing:make": before, "other:make": "x"})
    file.write_text("def make(passages, parts):\n    return lambda question: passages[:2]\n")
    assert hash_peer_code("changing:make") != before
    run(make_set(), full, out, peer_code={"third:make": "y"})
    with pytest.raises(EvaluationError, match="the peer changing:make of other code"):
        run(make_set(), full, out, peer_code={"changing:make": hash_peer_code("changing:make")})


def test_peer_without_file_has_empty_hash(monkeypatch):
    monkeypatch.setitem(sys.modules, "by_hand", ModuleType("by_hand"))
    assert hash_peer_code("by_hand:mine") == hash_peer_code("no.such.module:f") == ""


def test_version_includes_hash_of_relevant_code(monkeypatch, tmp_path):
    for folder in ("evaluation", "phases", "cli"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("a = 1")
    monkeypatch.setattr(results_module, "__file__", str(tmp_path / "evaluation" / "results.py"))
    first = results_module._hash_code()
    (tmp_path / "cli" / "a.py").write_text("a = 2")
    assert results_module._hash_code() == first
    (tmp_path / "phases" / "a.py").write_text("a = 2")
    assert results_module._hash_code() != first
    assert results_module._hash_code() in results_module.collect_versions()["meve"]


def test_run_with_other_settings_is_rejected_by_name(tmp_path):
    run(make_set(), {"full": pipeline_system()}, tmp_path, model="a", size=4)
    with pytest.raises(EvaluationError, match='model "a", now "b"; size 4, now 5'):
        run(make_set(), {"full": pipeline_system()}, tmp_path, model="b", size=5)
    with pytest.raises(EvaluationError, match="the set tiny of other data"):
        run(make_set(3), {"full": pipeline_system()}, tmp_path, model="a", size=4)


def test_resumed_run_may_change_scope(tmp_path):
    run(make_set(), {"full": pipeline_system()}, tmp_path, questions=4, peers=[])
    run(make_set(), {"full": pipeline_system()}, tmp_path, questions=5, peers=["a:b"])


def test_damaged_outcome_is_rejected_with_its_line(tmp_path):
    run(make_set(), {"full": pipeline_system()}, tmp_path)
    text = (tmp_path / ROWS).read_text()
    (tmp_path / ROWS).write_text("{broken}\n" + text)
    with pytest.raises(EvaluationError, match="line 1"):
        run(make_set(), {"full": pipeline_system()}, tmp_path)


@pytest.mark.parametrize(("name", "text"), [(ROWS, b"\xff\n"), (SETTINGS, b"[1]"), (SETTINGS, b""), (SETTINGS, b"3")])
def test_damaged_files_are_named(tmp_path, name, text):
    run(make_set(), {"full": pipeline_system()}, tmp_path)
    (tmp_path / name).write_bytes(text)
    with pytest.raises(EvaluationError, match=name):
        run(make_set(), {"full": pipeline_system()}, tmp_path)


def test_folder_is_locked_against_second_run(tmp_path):
    with closing(Journal(tmp_path, {})), pytest.raises(EvaluationError, match="another run"):
        Journal(tmp_path, {})
    Journal(tmp_path, {}).close()


def test_saved_curve_is_reused(tmp_path):
    dataset, file = make_set(), tmp_path / "curve.jsonl"
    points = measure_curve(dataset, dataset.questions, COMPONENTS, tmp_path)
    assert {p.n for p in points} == {4}
    kept = file.stat().st_mtime_ns
    assert measure_curve(dataset, dataset.questions, COMPONENTS, tmp_path) == points
    assert file.stat().st_mtime_ns == kept
    fewer = measure_curve(dataset, dataset.questions[:2], COMPONENTS, tmp_path)
    assert {p.n for p in fewer} == {2}
    assert len(file.read_text().splitlines()) == len(points)
    file.write_text(file.read_text()[:-20])
    with pytest.raises(EvaluationError, match=r"curve\.jsonl is damaged"):
        measure_curve(dataset, dataset.questions, COMPONENTS, tmp_path)


def test_curve_with_raised_query_counts_it_and_is_not_reused(tmp_path):
    dataset, file = make_set(), tmp_path / "curve.jsonl"
    blank = replace(dataset, questions=(*dataset.questions, Question(id="blank", text=" ", gold={"p0": 1})))
    points = measure_curve(blank, blank.questions, COMPONENTS, tmp_path)
    assert max(p.recall for p in points) == 0.8
    assert {p.raised for p in points if p.system != "bm25"} == {1}
    kept = file.stat().st_mtime_ns
    assert measure_curve(blank, blank.questions, COMPONENTS, tmp_path) == points
    assert file.stat().st_mtime_ns > kept


def test_outcomes_without_settings_are_rejected(tmp_path):
    (tmp_path / ROWS).write_text("{}\n")
    with pytest.raises(EvaluationError, match="without their settings"):
        Journal(tmp_path, {})


@pytest.mark.parametrize("closed", [False, True])
def test_raised_question_counts_as_empty_and_is_reported(tmp_path, closed):
    def build(indexed):
        full = pipeline_system()(indexed)

        def system(question):
            if "honey" in question:
                raise RuntimeError("no bees today")
            return full(question)

        return system

    results = run(make_set(has_pools=closed), {"shaky": build, "full": pipeline_system()}, tmp_path)
    assert [(f.system, f.question, f.error) for f in results.failures] == [
        ("shaky", "q1", "RuntimeError: no bees today")
    ]
    assert results.value("tiny", "shaky", "supporting recall").value == 0.75
    assert results.value("tiny", "full", "supporting recall").value == 1.0


def test_system_sees_only_the_pool_of_a_question(tmp_path):
    seen = []

    def build(indexed):
        seen.append(tuple(p.id for p in indexed.passages))
        return pipeline_system()(indexed)

    run(make_set(has_pools=True), {"full": build}, tmp_path)
    assert sorted(seen) == [("p0", "p1"), ("p1", "p2"), ("p2", "p3"), ("p3", "p0")]


def test_systems_take_turns(tmp_path):
    order = []

    def recording_factory(name):
        def build(indexed):
            full = pipeline_system()(indexed)
            return lambda question: (order.append(name), full(question))[1]

        return build

    dataset = make_set()
    with_two = with_questions(dataset, one=recording_factory("one"), two=recording_factory("two"))
    with closing(Journal(tmp_path, {})) as journal:
        run_set(dataset, with_two, COMPONENTS, journal)
    assert order == ["one", "one", "two", "two", *["one", "two"] * 3]  # the first of each only warms it up


def test_invalid_peer_name_is_rejected():
    for name in ("nothing", "no.such.module:f", "meve.types:nothing"):
        with pytest.raises(ConfigurationError, match="--peer"):
            load_peer(name)


def test_peer_query_is_embedded_once_a_question(tmp_path, monkeypatch):
    (tmp_path / "asking.py").write_text(
        "def make(passages, parts):\n"
        "    def ask(question):\n"
        "        parts.embedder.embed_query(question)\n"
        "        parts.verifier.score(question, [p.text for p in passages])\n"
        "        return passages\n"
        "    return ask\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    counted = CountingEmbedder(WordEmbedder())
    components = replace(COMPONENTS, embedder=counted, verifier=CosineVerifier(counted, load_shipped_calibration()))
    system = load_peer("asking:make")(IndexedPassages([Passage(id="a", text=TEXTS[0])], components))
    for question in ("one moon", "two bees", "one moon"):
        system(question)
    assert counted.calls.queries == ["one moon", "two bees", "one moon"]


def test_peer_passages_are_joined_and_counted(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "somebodys.py").write_text(
        "def make(passages, parts):\n    return lambda question: [p for p in passages if p.text == question]\n"
        "def lazy(passages, parts):\n    return lambda question: (p for p in passages if p.text == question)\n"
        "def wrong(passages, parts):\n    return lambda question: ['text']\n"
        "def none(passages, parts):\n    return lambda question: None\n"
        "def unmade(passages, parts):\n    raise RuntimeError('no \\ud800 model')\n"
        "def quits(passages, parts):\n    return lambda question: exit(3)\n"
        "def much(passages, parts):\n    return lambda question: list(passages) * 100\n"
    )
    (folder / "broken_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(folder)
    names = ("make", "lazy", "wrong", "none", "unmade", "quits", "much")
    results = run(make_set(), {name: load_peer(f"somebodys:{name}") for name in names}, tmp_path / "out")
    for name in ("make", "lazy"):
        assert results.value("tiny", name, "supporting precision").value == 1.0
        assert results.value("tiny", name, "tokens").value == pytest.approx(sum(len(t.split()) for t in TEXTS) / 4)
    assert {f.system for f in results.failures} == {"wrong", "none", "unmade", "quits"}
    assert len(results.failures) == 4 * 4
    assert [odd.split(":")[0] for odd in results.oddities] == ["tiny, much", "tiny, much"]
    with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
        load_peer("broken_module:make")


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from types import ModuleType
from test_run import make_set, pipeline_system, run
def slow(indexed):
    full = pipeline_system()(indexed)
    def system(question):
        time.sleep(0.03)
        return full(question)
    return system
run(make_set(60), {{"full": slow}}, Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_killed_run_is_resumed(tmp_path):
    code = KILLED.format(tests=os.path.dirname(__file__))
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "killed")])
        rows = tmp_path / "killed" / ROWS
        before = rows.stat().st_size if rows.exists() else 0
        deadline = time.monotonic() + 60
        while (rows.stat().st_size if rows.exists() else 0) <= before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.15)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert 0 < rows.read_bytes().count(b"\n") < 60
    resumed = run(make_set(60), {"full": pipeline_system()}, tmp_path / "killed")
    whole = run(make_set(60), {"full": pipeline_system()}, tmp_path / "whole")
    for one, other in zip(whole.cells, resumed.cells, strict=True):
        assert one.measure.endswith(" ms") or one == other
