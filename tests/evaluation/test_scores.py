"""Each pair is read once for all systems, and each of them is charged for it."""

import time
from collections.abc import Sequence

import numpy as np
import pytest

from meve.calibration import PlattCalibration
from meve.evaluation.outcome import NOTHING
from meve.evaluation.run import ask
from meve.evaluation.scores import ReadOnce
from meve.evaluation.types import Handed, Question

SLOW = 0.03


class Counting:
    """Scores a text by its length, slowly, and remembers what it was given."""

    name = "counting"

    def __init__(self, calibration: PlattCalibration) -> None:
        self.calibration = calibration
        self.read: list[str] = []

    def raw_scores(self, query: str, passages: Sequence[str]) -> np.ndarray:
        self.read += passages
        time.sleep(SLOW * len(passages))
        return np.array([len(query) + len(text) for text in passages], dtype=np.float32)

    def with_calibration(self, calibration: PlattCalibration) -> "Counting":
        other = Counting(calibration)
        other.read = self.read
        return other


@pytest.fixture
def counting():
    return Counting(PlattCalibration())


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
    assert first >= 2000 * SLOW
    assert second == pytest.approx(first, rel=0.2)
    assert ask(lambda _: NOTHING, question, once).ms < 1000 * SLOW, "nobody is charged for another's question"


def test_what_is_read_before_the_clock_starts_is_not_charged(counting):
    once = ReadOnce(counting)
    once.score("q", ["aaa"])
    once.score("q", ["aaa"])
    assert ask(lambda _: NOTHING, Question(id="1", text="q"), once).ms < 1000 * SLOW
