"""Which questions are kept out of training. The first ones that `meve bench` draws are never trained on.

`meve bench quality` asks a sample of each set in an order that depends on the seed and the ids alone; here the same
order decides, so that its default run asks nothing that the shipped verifier has seen. Whole sets are kept out as well:
SciFact, NFCorpus, MuSiQue, HotpotQA's fullwiki contexts, and RGB, whose licence forbids training besides.
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
"""How many questions of a set, the first in the order of the benchmark, are for testing."""
DEV_PERCENT = 5
"""The share of the groups of a training set that stays out of training, to calibrate and to choose by."""


def parted(chosen: EvaluationSet) -> tuple[list[Question], list[Question]]:
    """A set's questions for training, and those for testing."""
    ordered = sample_questions(chosen.questions, None, SEED)
    at = KEPT_OUT[chosen.name]
    return ordered[at:], ordered[:at]


def part_of(source: str, group: str) -> str:
    """`train`, `dev` or `test`, by the name of a page, document or dialogue, so that it never changes."""
    place = hashlib.sha256(f"{source}/{group}".encode()).digest()[0] * 100 / 256
    return "test" if place < DEV_PERCENT else "dev" if place < 2 * DEV_PERCENT else "train"


def unseen(chosen: EvaluationSet, root: Path) -> list[Question]:
    """Questions that the verifier wasn't trained on, and that `meve bench` doesn't ask unless told to.

    HotpotQA's fullwiki contexts ask some of HotpotQA's; those are left out.
    """
    training, tested = parted(chosen)
    found = [*tested[QUESTIONS:], *(q for q in training if part_of(chosen.name, q.id) != "train")]
    elsewhere = asked_in_fullwiki(root) if chosen.name == "hotpotqa" else set()
    return [q for q in found if q.text not in elsewhere]


def asked_in_fullwiki(root: Path) -> set[str]:
    """The texts of the questions that come with HotpotQA's fullwiki contexts."""
    return {q.text for q in read_set("hotpotqa_fullwiki", root).questions}
