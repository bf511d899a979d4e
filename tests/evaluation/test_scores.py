"""Each pair is read once for all systems, and each of them is charged for it."""

import time
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest

from meve.calibration.maps import PlattCalibration
from meve.evaluation.experiments.common import made_parts
from meve.evaluation.journal import Journal
from meve.evaluation.outcome import NOTHING
from meve.evaluation.run import ask, run_set
from meve.evaluation.scores import ReadOnce
from meve.evaluation.systems import Workbench
from meve.evaluation.types import EvaluationSet, Handed, Parts, Question, System
from meve.pipeline.config import RetrieverConfig
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.types import Passage

SLOW = 0.03


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes where something is read, and nowhere else."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


class Counting:
    """Scores a text by its length, slowly, and remembers what it was given."""

    name = "counting"

    def __init__(self, calibration: PlattCalibration, clock: list[float]) -> None:
        self.calibration, self.clock = calibration, clock
        self.read: list[str] = []

    def raw_scores(self, query: str, passages: Sequence[str]) -> np.ndarray:
        self.read += passages
        self.clock[0] += SLOW * len(passages)
        return np.array([len(query) + len(text) for text in passages], dtype=np.float32)

    def with_calibration(self, calibration: PlattCalibration) -> "Counting":
        other = Counting(calibration, self.clock)
        other.read = self.read
        return other


@pytest.fixture
def counting(clock):
    return Counting(PlattCalibration(), clock)


def test_a_pair_is_read_once_and_scored_in_the_order_given(counting):
    once = ReadOnce(counting)
    assert once.raw_scores("q", ["aaa", "b", "aaa"]).tolist() == [4, 2, 4]
    assert once.raw_scores("q", ["cc", "aaa"]).tolist() == [3, 4]
    assert once.raw_scores("qq", ["aaa"]).tolist() == [5]
    assert counting.read == ["aaa", "b", "cc", "aaa"]


def test_another_calibration_reads_nothing_again(counting):
    once = ReadOnce(counting)
    first = once.score("q", ["aaa"])
    second = once.with_calibration(PlattCalibration(slope=0.5)).score("q", ["aaa"])
    assert counting.read == ["aaa"]
    assert second[0] < first[0]


def test_who_asks_second_is_charged_what_the_first_waited(counting):
    """So that no system seems quick because another was asked before."""
    once = ReadOnce(counting)

    def system(_: str) -> Handed:
        once.score("q", ["aaa", "bbb"])
        return NOTHING

    question = Question(id="1", text="q")
    first, second = (ask(system, question, once).ms for _ in range(2))
    assert first == second == pytest.approx(2000 * SLOW)
    assert ask(lambda _: NOTHING, question, once).ms == 0, "nobody is charged for another's question"


def test_what_is_read_before_the_clock_starts_is_not_charged(counting):
    once = ReadOnce(counting)
    once.score("q", ["aaa"])
    once.score("q", ["aaa"])
    assert ask(lambda _: NOTHING, Question(id="1", text="q"), once).ms == 0


def test_what_is_forgotten_is_read_again_and_owed_by_nobody(counting):
    """A cold reading isn't what everybody is charged afterwards."""
    once = ReadOnce(counting)
    once.score("q", ["aaa"])
    once.score("q", ["aaa"])
    once.forget()
    assert once.owed() == 0
    once.score("q", ["aaa"])
    assert counting.read == ["aaa", "aaa"]


def test_peers_get_the_weights_that_are_named_for_them(tmp_path):
    """Beside a verifier whose own weights no peer could load."""
    given = {"embedder": None, "verifier": None, "tokens": None, "config": RetrieverConfig(), "cache": tmp_path}
    assert made_parts(**given).verifier_model is None
    assert made_parts(**given, peer_weights="theirs").verifier_model == "theirs"


def test_the_first_question_is_timed_warm(counting, tmp_path):
    """What was read while a system warmed up is read again for its first question, on the clock."""
    parts = Parts(embedder=WordEmbedder(), verifier=ReadOnce(counting), tokens=WordCounter())
    chosen = EvaluationSet(name="s", passages=(Passage(id="a", text="aaa"),), questions=(Question(id="1", text="q"),))

    def build(bench: Workbench) -> System:
        def system(question: str) -> Handed:
            bench.parts.verifier.score(question, ["aaa"])
            return NOTHING

        return system

    with closing(Journal(tmp_path, {})) as journal:
        run_set(chosen, {"it": (build, chosen.questions)}, parts, journal)
        assert journal.get("s", "it", "1").ms == pytest.approx(1000 * SLOW)
    assert counting.read == ["aaa", "aaa"]
