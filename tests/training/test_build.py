"""Test the building of verifiers from labelled pairs."""

import json

import pytest

from meve.calibration.probability_maps import PlattCalibration
from meve.components.verifiers import resolve_verifier
from meve.errors import TrainingError
from meve.testing.fakes import OverlapVerifier, WordEmbedder
from meve.testing.tiny_models import save_tiny_model
from meve.training import TrainingConfig, build_verifier
from meve.training.mining import add_negatives
from meve.training.verifier_comparison import compare_verifiers, split_pairs
from meve.types import LabelledPair

NAMES = [f"thing{n}" for n in range(120)]
ANSWERED = [
    LabelledPair(query=f"what is {name}?", passage=f"{name} is a kind of harbour", relevant=True) for name in NAMES
]


class Fixed:
    """A verifier that scores by a rule."""

    name = "fixed"
    calibration = PlattCalibration()

    def __init__(self, rule):
        self.rule = rule

    def raw_scores(self, query, passages):
        import numpy as np

        return np.array([self.rule(query, passage) for passage in passages], dtype=np.float32)

    def score(self, query, passages):
        return self.calibration.apply(self.raw_scores(query, passages))


def right(query, passage):
    return 3.0 if query.split()[-1].rstrip("?") in passage.split() else -3.0


def blind(query, passage):
    return float(len(passage) % 7)


def test_every_query_gets_only_irrelevant_negatives():
    result = add_negatives(ANSWERED, count=3, seed=1)
    assert result[: len(ANSWERED)] == ANSWERED
    for pair in ANSWERED:
        mine = [p for p in result if p.query == pair.query and not p.relevant]
        assert len({p.passage for p in mine}) == 3
        assert pair.passage not in {p.passage for p in mine}
    assert add_negatives(ANSWERED, count=3, seed=1) == result


def test_given_negatives_count_and_similar_ones_are_preferred():
    query = "who feeds the owls at night?"
    given = LabelledPair(query=query, passage="nobody knows", relevant=False)
    near = [LabelledPair(query=f"other {n}", passage=f"the owls sleep in tree {n}", relevant=True) for n in range(4)]
    far = [LabelledPair(query=f"else {n}", passage=f"bread costs {n}", relevant=True) for n in range(60)]
    answer = LabelledPair(query=query, passage="a keeper feeds them", relevant=True)
    result = add_negatives([answer, given, *near, *far], count=3)
    fresh = [p.passage for p in result[len(near) + len(far) + 2 :] if p.query == query]
    assert len(fresh) == 2
    assert all("owls" in passage for passage in fresh)


def test_parts_are_disjoint_and_complete():
    parts = split_pairs(add_negatives(ANSWERED), share=0.2, seed=3)
    queries = [{p.query for p in part} for part in (parts.train, parts.fit, parts.test)]
    assert sum(map(len, queries)) == len(set().union(*queries)) == len(NAMES)
    assert len(queries[1]) == len(queries[2]) == 12
    with pytest.raises(TrainingError, match="label 100 or more"):
        split_pairs(ANSWERED[:20])


def test_verdict_needs_a_significant_gain():
    parts = split_pairs(add_negatives(ANSWERED))
    better = compare_verifiers(Fixed(right), Fixed(blind), parts, fitted_on="x")
    assert better.better
    assert better.new.auc.value == 1.0
    assert better.new.error < 0.1
    worse = compare_verifiers(
        Fixed(lambda q, p: right(q, p) if "1" in q else blind(q, p)), Fixed(right), parts, fitted_on="x"
    )
    assert not worse.better
    assert worse.gain.high < 0
    same = compare_verifiers(Fixed(right), Fixed(right), parts, fitted_on="x")
    assert not same.better
    assert (same.gain.low, same.gain.high) == (0, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_built_verifier_is_calibrated_and_loadable(tmp_path):
    pytest.importorskip("accelerate")
    base = save_tiny_model(tmp_path / "base", kind="encoder", words=tuple(NAMES))
    stages = []
    verdict = build_verifier(
        ANSWERED, tmp_path / "mine", base=base, replaces=OverlapVerifier(), fitted_on="things.jsonl",
        config=TrainingConfig(epochs=3, batch_size=8, learning_rate=1e-3, max_length=32),
        progress=lambda stage, output, total: stages.append((stage, output == total)),
    )  # fmt: skip
    assert {stage for stage, _ in stages} == {"training", "judging"}
    assert ("judging", True) in stages
    result = resolve_verifier(str(tmp_path / "mine"), WordEmbedder())
    assert result.calibration == verdict.calibration
    assert result.calibration.fitted_on == "things.jsonl"
    assert json.loads((tmp_path / "mine" / "verdict.json").read_text())["gain"]["n"] == 12
