"""`SharedVerifier`: each pair is scored once, and its time is charged to every system."""

import time
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest

from meve.calibration.probability_maps import PlattCalibration
from meve.evaluation._journal import Journal
from meve.evaluation._model_caches import DiskCachedSentenceVerifier, SharedVerifier
from meve.evaluation._set_runner import ask_system, run_set
from meve.evaluation.experiments._experiment import RetrievalOptions, load_components
from meve.evaluation.systems import IndexedPassages
from meve.evaluation.types import EMPTY_OUTPUT, EvaluationSet, Question, SharedComponents, System, SystemOutput
from meve.pipeline.config import RetrieverConfig
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.types import Passage, TextSpans

SLOW = 0.03


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that only scoring advances."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


class Counting:
    """A verifier that scores texts by length, slowly, and records them."""

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


def test_each_pair_is_scored_once_in_the_order_given(counting):
    shared = SharedVerifier(counting)
    assert shared.raw_scores("q", ["aaa", "b", "aaa"]).tolist() == [4, 2, 4]
    assert shared.raw_scores("q", ["cc", "aaa"]).tolist() == [3, 4]
    assert shared.raw_scores("qq", ["aaa"]).tolist() == [5]
    assert counting.read == ["aaa", "b", "cc", "aaa"]


def test_other_calibration_reuses_scores(counting):
    shared = SharedVerifier(counting)
    first = shared.score("q", ["aaa"])
    second = shared.with_calibration(PlattCalibration(slope=0.5)).score("q", ["aaa"])
    assert counting.read == ["aaa"]
    assert second[0] < first[0]


def test_cached_scores_are_charged_to_every_system(counting):
    shared = SharedVerifier(counting)

    def system(_: str) -> SystemOutput:
        shared.score("q", ["aaa", "bbb"])
        return EMPTY_OUTPUT

    question = Question(id="1", text="q")
    first, second = (ask_system(system, question, shared).ms for _ in range(2))
    assert first == second == pytest.approx(2000 * SLOW)
    assert ask_system(lambda _: EMPTY_OUTPUT, question, shared).ms == 0


def test_scores_cached_before_the_question_are_not_charged(counting):
    shared = SharedVerifier(counting)
    shared.score("q", ["aaa"])
    shared.score("q", ["aaa"])
    assert ask_system(lambda _: EMPTY_OUTPUT, Question(id="1", text="q"), shared).ms == 0


def test_cleared_scores_are_computed_again_and_not_charged(counting):
    shared = SharedVerifier(counting)
    shared.score("q", ["aaa"])
    shared.score("q", ["aaa"])
    shared.clear()
    assert shared.take_spared_seconds() == 0
    shared.score("q", ["aaa"])
    assert counting.read == ["aaa", "aaa"]


class CountingSentences(Counting):
    """It also scores sentences, by their number of characters."""

    scores_sentences = True

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[np.ndarray]:
        self.read += passages
        return [np.array([end - start for start, end in spans], dtype=np.float32) for spans in sentences]


def test_sentences_are_scored_once_in_the_order_given(clock):
    inner = CountingSentences(PlattCalibration(), clock)
    shared = SharedVerifier(inner)
    for passages in (["aaa b"], ["cc", "aaa b"]):
        scored = shared.score_sentences("q", passages, [[(0, 3), (4, 5)] if " " in p else [(0, 2)] for p in passages])
        assert [row.tolist() for row in scored] == [[3, 1] if " " in p else [2] for p in passages]
    assert inner.read == ["aaa b", "cc"]


def test_scores_on_disk_are_read_by_the_next_verifier_and_sentences_scored_anew(clock, tmp_path):
    for expected in (3, 1):  # the probe and two texts, then the probe
        inner = CountingSentences(PlattCalibration(), clock)
        cached = DiskCachedSentenceVerifier(inner, tmp_path / "scores.sqlite")
        assert cached.raw_scores("q", ["aaa", "b"]).tolist() == [4, 2]
        assert len(inner.read) == expected
        assert cached.scores_sentences
        assert cached.score_sentences("q", ["aaa"], [[(0, 3)]])[0].tolist() == [3]


def test_peer_weights_override_verifier_model(tmp_path):
    options, config = RetrievalOptions(data=tmp_path, to=tmp_path, cache=tmp_path), RetrieverConfig()
    assert load_components(options, config).verifier_model is None
    assert load_components(options, config, peer_weights="theirs").verifier_model == "theirs"


def test_first_question_is_timed_after_warm_up(counting, tmp_path):
    components = SharedComponents(embedder=WordEmbedder(), verifier=SharedVerifier(counting), tokens=WordCounter())
    dataset = EvaluationSet(name="s", passages=(Passage(id="a", text="aaa"),), questions=(Question(id="1", text="q"),))

    def build(indexed: IndexedPassages) -> System:
        def system(question: str) -> SystemOutput:
            indexed.components.verifier.score(question, ["aaa"])
            return EMPTY_OUTPUT

        return system

    with closing(Journal(tmp_path, {})) as journal:
        run_set(dataset, {"it": (build, dataset.questions)}, components, journal)
        assert journal.get("s", "it", "1").ms == pytest.approx(1000 * SLOW)
    assert counting.read == ["aaa", "aaa"]
