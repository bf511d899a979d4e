"""The fates of ranked candidates in phase 4, asked for one by one."""

import random

import numpy as np
import pytest

from meve.pipeline.phases.prioritize import RankedCandidates
from tests.pipeline.test_phases import candidate, reasons, vectors


def find_reasons(order, close, relate):
    """Return by place why candidates are dropped, decided from the first to the last: the rule of phase 4."""
    reasons = {}
    for i in range(len(order)):
        relations = {n: relate(order[i].passage, order[n].passage) for n in close[i] if n not in reasons}
        winners = [n for n, relation in relations.items() if relation == "yields"]
        if winners:
            reasons[i] = f"contradicted_by:{order[winners[0]].id}"
        else:
            beaten = [n for n, relation in relations.items() if relation == "prevails"]
            reasons |= {n: f"contradicted_by:{order[i].id}" for n in beaten}
    for i in sorted(set(range(len(order))) - reasons.keys()):
        same = [n for n in close[i] if n not in reasons and relate(order[i].passage, order[n].passage) == "same"]
        if same:
            reasons[i] = f"redundant_with:{order[same[0]].id}"
    return {order[i].id: reason for i, reason in reasons.items()}


class RandomRelations:
    """Relates passages at random, always in the same way, and counts how often."""

    def __init__(self, seed, foresees):
        self.random, self.known, self.foreseen = random.Random(seed), {}, {}
        if foresees:
            self.foresee = self._foresee

    def _foresee(self, one, other):
        return self.foreseen.setdefault((one.id, other.id), self.random.choice(["yields", "prevails"]))

    def __call__(self, one, other):
        relation = self.random.choice(["", "same", "conflict"])
        conflict = self._foresee(one, other)
        return self.known.setdefault((one.id, other.id), conflict if relation == "conflict" else relation)


class TestRankedCandidates:
    @pytest.mark.parametrize("size", [0, 1, 12, 120])
    @pytest.mark.parametrize("foresees", [False, True])
    def test_fates_asked_for_in_any_order_are_those_decided_from_first_to_last(self, size, foresees):
        for seed in range(3 if size > 100 else 60):
            rng = np.random.default_rng(seed)
            rows = rng.standard_normal((size, 3)).astype(np.float32)
            candidates = [candidate(f"c{n}", score=float(rng.random())) for n in range(size)]
            relate = RandomRelations(seed, foresees)
            ranked = RankedCandidates(candidates, rows, 0.6, relate)
            units = {c.id: row / np.linalg.norm(row) for c, row in zip(candidates, rows, strict=True)}
            order = ranked.order
            cosines = np.array([[units[a.id] @ units[b.id] for b in order] for a in order])
            close = [
                sorted((n for n in range(i) if cosines[i, n] > 0.6), key=lambda n, i=i: -cosines[i, n])
                for i in range(size)
            ]
            asked = random.Random(seed).sample(order, size)
            found = {c.id: reason for c in asked if (reason := ranked.find_reason(c))}
            assert found == find_reasons(order, close, relate)
            assert found == reasons(ranked.select())

    def test_only_what_decides_a_fate_is_compared(self):
        three = [candidate(i, score=s) for i, s in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
        near = vectors([1, 0], [1, 0], [1, 0])
        calls = []
        ranked = RankedCandidates(three, near, 0.85, lambda one, other: calls.append(one.id + other.id) or "")
        assert ranked.find_reason(three[0]) == ""
        assert sorted(calls) == ["ba", "ca"], "b against c decides nothing of a"

    @pytest.mark.parametrize("length", [100, 200, 1_000])
    @pytest.mark.parametrize("relation", ["same", "yields", "prevails"])
    def test_chain_in_which_each_depends_on_the_one_before_is_decided(self, length, relation):
        rows = np.eye(length, length + 1, dtype=np.float32)
        rows += np.roll(rows, 1, axis=1)
        chain = [candidate(f"c{n:04}", score=1 - n / length) for n in range(length)]
        ranked = RankedCandidates(chain, rows, 0.4, lambda *_: relation)
        fates = [bool(ranked.find_reason(each)) for each in (chain[-1], chain[0])]
        assert fates == {"same": [True, False], "yields": [True, False], "prevails": [False, True]}[relation]
