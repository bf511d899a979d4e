"""Decides which questions are held out of training: the first ones that `meve bench` draws, and whole sets.

`meve bench quality` orders the questions of a set by seed and ids alone. The same order is used here, so its default
run asks nothing that the shipped verifier was trained on. SciFact, NFCorpus, MuSiQue, HotpotQA's fullwiki contexts and
RGB, whose licence forbids training, are held out entirely.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import QUESTIONS
from meve.evaluation.types import EvaluationSet, Question

SEED = 42
KEPT_OUT: Mapping[str, int] = {"hotpotqa": 200, "2wiki": 150, "nq_open": 400}
"""The number of test questions per set, the first in benchmark order."""
DEV_PERCENT = 5
"""The percentage of groups held out of training, for calibration and model selection."""


def split_questions(chosen: EvaluationSet) -> tuple[list[Question], list[Question]]:
    """Return a set's training questions and test questions."""
    ordered = sample_questions(chosen.questions, None, SEED)
    at = KEPT_OUT[chosen.name]
    return ordered[at:], ordered[:at]


def part_of(source: str, group: str) -> str:
    """Return `train`, `dev` or `test` by the hash of a page, document or dialogue name."""
    place = hashlib.sha256(f"{source}/{group}".encode()).digest()[0] * 100 / 256
    return "test" if place < DEV_PERCENT else "dev" if place < 2 * DEV_PERCENT else "train"


def unseen(chosen: EvaluationSet, root: Path) -> list[Question]:
    """Return questions that neither training nor `meve bench` uses by default.

    Questions of HotpotQA that also come with its fullwiki contexts are left out.
    """
    training, tested = split_questions(chosen)
    questions = [*tested[QUESTIONS:], *(q for q in training if part_of(chosen.name, q.id) != "train")]
    elsewhere = asked_in_fullwiki(root) if chosen.name == "hotpotqa" else set()
    return [q for q in questions if q.text not in elsewhere]


def asked_in_fullwiki(root: Path) -> set[str]:
    """Return the texts of the questions of HotpotQA's fullwiki contexts."""
    return {q.text for q in read_set("hotpotqa_fullwiki", root).questions}
