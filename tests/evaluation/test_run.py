"""Runs: in turn, resumed where they stopped, refused under other settings, and not ended by one that raises."""

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
from meve.components.verifiers.cosine import CosineVerifier, shipped_calibration
from meve.errors import ConfigurationError, EvaluationError
from meve.evaluation import EvaluationSet, Parts, Question, results
from meve.evaluation.experiments.common import conduct
from meve.evaluation.experiments.curve import curve
from meve.evaluation.journal import ROWS, SETTINGS, Journal
from meve.evaluation.peers import peer, peer_code
from meve.evaluation.run import fingerprint, run_set, sample
from meve.evaluation.systems import SYSTEMS, Workbench, phases
from meve.testing.fakes import CountedEmbedder, OverlapVerifier, WordCounter, WordEmbedder

pytestmark = pytest.mark.usefixtures("few_draws")

TEXTS = ("The moon orbits the earth.", "Bees make honey.", "Rust is iron and oxygen.", "Owls hunt at night.")
PARTS = Parts(
    embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(), config=RetrieverConfig(candidates=3)
)


def a_set(questions=4, name="tiny", closed=False):
    passages = tuple(Passage(id=f"p{n}", text=text) for n, text in enumerate(TEXTS))
    asked = tuple(
        Question(
            id=f"q{n}",
            text=TEXTS[n % 4],
            gold={f"p{n % 4}": 1},
            pool=(f"p{n % 4}", f"p{(n + 1) % 4}") if closed else None,
        )
        for n in range(questions)
    )
    return EvaluationSet(name=name, passages=passages, questions=asked)


def systems(chosen, **builds):
    return {name: (build, list(chosen.questions)) for name, build in builds.items()}


def counting(calls):
    def build(bench):
        full = phases()(bench)

        def system(question):
            calls[question] += 1
            return full(question)

        return system

    return build


def run(chosen, builds, folder, **settings):
    return conduct(
        "quality", [chosen], lambda s: systems(s, **builds), PARTS, to=folder, seed=1, settings=settings, against="full"
    )


def test_a_sample_depends_on_ids_and_seed_alone():
    questions = a_set(40).questions
    assert sample(questions, 10, 42) == sample(tuple(reversed(questions)), 10, 42)
    assert sample(questions, 10, 42) != sample(questions, 10, 43)
    assert sample(questions, 20, 42)[:10] == sample(questions, 10, 42)
    assert len(sample(questions, None, 42)) == 40


def test_the_fingerprint_sees_every_label():
    one = a_set()
    other = replace(one, questions=(replace(one.questions[0], gold={"p3": 1}), *one.questions[1:]))
    third = replace(one, passages=(replace(one.passages[0], text="Else."), *one.passages[1:]))
    fourth = replace(one, questions=(replace(one.questions[0], misleading=("no",)), *one.questions[1:]))
    assert len({fingerprint(s) for s in (one, other, third, fourth)}) == 4


def test_every_system_is_measured_and_each_hands_over_what_it_should(tmp_path):
    found = run(a_set(), SYSTEMS, tmp_path)
    assert found.systems("tiny") == list(SYSTEMS)
    for system in ("full", "bm25", "hybrid", "dense"):
        assert found.value("tiny", system, "any gold").value == 1.0
    assert found.value("tiny", "full", "supporting precision").value == 1.0
    assert found.value("tiny", "dense", "supporting precision").value < 1.0


def test_a_resumed_run_asks_only_what_is_missing(tmp_path):
    first, again = Counter(), Counter()
    chosen = a_set()
    whole = run(chosen, {"full": counting(first)}, tmp_path)
    lines = (tmp_path / ROWS).read_text().splitlines(keepends=True)
    (tmp_path / ROWS).write_text("".join(lines[:2]) + lines[2][: len(lines[2]) // 2])  # killed while it wrote
    resumed = run(chosen, {"full": counting(again)}, tmp_path)
    done = {json.loads(line)["question_id"] for line in lines[:2]}
    missing = {q.text for q in chosen.questions if q.id not in done}
    assert set(again) == missing
    for one, other in zip(whole.cells, resumed.cells, strict=True):
        assert one.measure.endswith(" ms") or one == other


def test_what_raised_is_asked_again(tmp_path):
    """A mended system gets its questions; what it answered already it isn't asked."""
    calls, chosen = Counter(), a_set()

    def broken(bench):
        full = phases()(bench)

        def system(question):
            if question == TEXTS[0]:
                raise RuntimeError("out of order")
            return full(question)

        return system

    assert len(run(chosen, {"full": broken}, tmp_path).failures) == 1
    mended = run(chosen, {"full": counting(calls)}, tmp_path)
    assert not mended.failures
    assert set(calls) == {TEXTS[0]}
    assert mended.value("tiny", "full", "any gold").value == 1.0


def test_a_peer_whose_code_has_changed_is_refused(tmp_path, monkeypatch):
    """Its old outcomes would pass for those of the new code."""
    file = tmp_path / "changing.py"
    file.write_text("def make(passages, parts):\n    return lambda question: passages[:1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = peer_code("changing:make")
    run(a_set(), {"full": phases()}, tmp_path / "out", peer_code={"changing:make": before, "other:make": "x"})
    file.write_text("def make(passages, parts):\n    return lambda question: passages[:2]\n")
    assert peer_code("changing:make") != before
    run(a_set(), {"full": phases()}, tmp_path / "out", peer_code={"third:make": "y"})
    with pytest.raises(EvaluationError, match="the peer changing:make of other code"):
        run(a_set(), {"full": phases()}, tmp_path / "out", peer_code={"changing:make": peer_code("changing:make")})


def test_a_peer_made_by_hand_has_no_code_to_hash(monkeypatch):
    """A function of a notebook, say."""
    monkeypatch.setitem(sys.modules, "by_hand", ModuleType("by_hand"))
    assert peer_code("by_hand:mine") == peer_code("no.such.module:f") == ""


def test_the_code_of_the_package_is_part_of_its_version(monkeypatch, tmp_path):
    """What decides what comes out, and nothing else: an outcome of older phases must not pass for one of newer."""
    made = tmp_path / "evaluation"
    for folder in ("evaluation", "phases", "cli"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("a = 1")
    monkeypatch.setattr(results, "__file__", str(made / "results.py"))
    first = results.code()
    (tmp_path / "cli" / "a.py").write_text("a = 2")
    assert results.code() == first
    (tmp_path / "phases" / "a.py").write_text("a = 2")
    assert results.code() != first
    assert results.code() in results.versions()["meve"]


def test_a_run_with_other_settings_is_refused_and_told_which(tmp_path):
    run(a_set(), {"full": phases()}, tmp_path, model="a", size=4)
    with pytest.raises(EvaluationError, match='model "a", now "b"; size 4, now 5'):
        run(a_set(), {"full": phases()}, tmp_path, model="b", size=5)
    with pytest.raises(EvaluationError, match="the set tiny of other data"):
        run(a_set(3), {"full": phases()}, tmp_path, model="a", size=4)


def test_how_much_is_asked_may_change(tmp_path):
    run(a_set(), {"full": phases()}, tmp_path, questions=4, peers=[])
    run(a_set(), {"full": phases()}, tmp_path, questions=5, peers=["a:b"])


def test_damaged_outcomes_are_refused_by_line(tmp_path):
    run(a_set(), {"full": phases()}, tmp_path)
    text = (tmp_path / ROWS).read_text()
    (tmp_path / ROWS).write_text("{broken}\n" + text)
    with pytest.raises(EvaluationError, match="line 1"):
        run(a_set(), {"full": phases()}, tmp_path)


@pytest.mark.parametrize(("name", "text"), [(ROWS, b"\xff\n"), (SETTINGS, b"[1]"), (SETTINGS, b""), (SETTINGS, b"3")])
def test_damaged_files_are_named(tmp_path, name, text):
    run(a_set(), {"full": phases()}, tmp_path)
    (tmp_path / name).write_bytes(text)
    with pytest.raises(EvaluationError, match=name):
        run(a_set(), {"full": phases()}, tmp_path)


def test_two_runs_do_not_write_to_one_folder(tmp_path):
    with closing(Journal(tmp_path, {})), pytest.raises(EvaluationError, match="another run"):
        Journal(tmp_path, {})
    Journal(tmp_path, {}).close()


def test_a_curve_is_made_again_from_what_is_kept(tmp_path):
    chosen, file = a_set(), tmp_path / "curve.jsonl"
    made = curve(chosen, chosen.questions, PARTS, tmp_path, None)
    assert {p.n for p in made} == {4}
    kept = file.stat().st_mtime_ns
    assert curve(chosen, chosen.questions, PARTS, tmp_path, None) == made
    assert file.stat().st_mtime_ns == kept
    fewer = curve(chosen, chosen.questions[:2], PARTS, tmp_path, None)
    assert {p.n for p in fewer} == {2}
    assert len(file.read_text().splitlines()) == len(made)
    file.write_text(file.read_text()[:-20])
    with pytest.raises(EvaluationError, match=r"curve\.jsonl is damaged"):
        curve(chosen, chosen.questions, PARTS, tmp_path, None)


def test_a_curve_survives_a_query_that_raises_counts_it_and_is_not_kept(tmp_path):
    chosen, file = a_set(), tmp_path / "curve.jsonl"
    blank = replace(chosen, questions=(*chosen.questions, Question(id="blank", text=" ", gold={"p0": 1})))
    made = curve(blank, blank.questions, PARTS, tmp_path, None)
    assert max(p.recall for p in made) == 0.8
    assert {p.raised for p in made if p.system != "bm25"} == {1}
    kept = file.stat().st_mtime_ns
    assert curve(blank, blank.questions, PARTS, tmp_path, None) == made
    assert file.stat().st_mtime_ns > kept


def test_outcomes_without_settings_are_nobodys(tmp_path):
    (tmp_path / ROWS).write_text("{}\n")
    with pytest.raises(EvaluationError, match="without their settings"):
        Journal(tmp_path, {})


@pytest.mark.parametrize("closed", [False, True])
def test_a_system_that_raises_once_counts_as_nothing_and_is_named(tmp_path, closed):
    def build(bench):
        full = phases()(bench)

        def system(question):
            if "honey" in question:
                raise RuntimeError("no bees today")
            return full(question)

        return system

    found = run(a_set(closed=closed), {"shaky": build, "full": phases()}, tmp_path)
    assert [(f.system, f.question, f.error) for f in found.failures] == [("shaky", "q1", "RuntimeError: no bees today")]
    assert found.value("tiny", "shaky", "supporting recall").value == 0.75
    assert found.value("tiny", "full", "supporting recall").value == 1.0


def test_in_a_closed_set_a_system_sees_only_its_question_s_passages(tmp_path):
    seen = []

    def build(bench):
        seen.append(tuple(p.id for p in bench.passages))
        return phases()(bench)

    run(a_set(closed=True), {"full": build}, tmp_path)
    assert sorted(seen) == [("p0", "p1"), ("p1", "p2"), ("p2", "p3"), ("p3", "p0")]


def test_systems_take_turns(tmp_path):
    order = []

    def noting(name):
        def build(bench):
            full = phases()(bench)
            return lambda question: (order.append(name), full(question))[1]

        return build

    chosen = a_set()
    with_two = systems(chosen, one=noting("one"), two=noting("two"))
    with closing(Journal(tmp_path, {})) as journal:
        run_set(chosen, with_two, PARTS, journal)
    assert order == ["one", "one", "two", "two", *["one", "two"] * 3]  # the first of each only warms it up


def test_a_peer_is_a_module_and_a_function():
    for name in ("nothing", "no.such.module:f", "meve.types:nothing"):
        with pytest.raises(ConfigurationError, match="--peer"):
            peer(name)


def test_a_peer_s_query_is_embedded_once_a_question(tmp_path, monkeypatch):
    """However many of its steps ask for the vector; and the next question's is none that is known."""
    (tmp_path / "asking.py").write_text(
        "def make(passages, parts):\n"
        "    def ask(question):\n"
        "        parts.embedder.embed_query(question)\n"
        "        parts.verifier.score(question, [p.text for p in passages])\n"
        "        return passages\n"
        "    return ask\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    counted = CountedEmbedder(WordEmbedder())
    parts = replace(PARTS, embedder=counted, verifier=CosineVerifier(counted, shipped_calibration()))
    system = peer("asking:make")(Workbench([Passage(id="a", text=TEXTS[0])], parts))
    for question in ("one moon", "two bees", "one moon"):
        system(question)
    assert counted.calls.queries == ["one moon", "two bees", "one moon"]


def test_a_peer_s_passages_are_joined_and_counted(tmp_path, monkeypatch):
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
    found = run(a_set(), {name: peer(f"somebodys:{name}") for name in names}, tmp_path / "out")
    for name in ("make", "lazy"):
        assert found.value("tiny", name, "supporting precision").value == 1.0
        assert found.value("tiny", name, "tokens").value == pytest.approx(sum(len(t.split()) for t in TEXTS) / 4)
    assert {f.system for f in found.failures} == {"wrong", "none", "unmade", "quits"}
    assert len(found.failures) == 4 * 4
    assert [odd.split(":")[0] for odd in found.oddities] == ["tiny, much", "tiny, much"]
    with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
        peer("broken_module:make")


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from types import ModuleType
from test_run import a_set, phases, run
def slow(bench):
    full = phases()(bench)
    def system(question):
        time.sleep(0.03)
        return full(question)
    return system
run(a_set(60), {{"full": slow}}, Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path):
    """Killed for real, several times at different moments; the outcome is that of a run that wasn't."""
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
    resumed = run(a_set(60), {"full": phases()}, tmp_path / "killed")
    whole = run(a_set(60), {"full": phases()}, tmp_path / "whole")
    for one, other in zip(whole.cells, resumed.cells, strict=True):
        assert one.measure.endswith(" ms") or one == other
