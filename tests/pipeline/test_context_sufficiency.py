"""Sufficiency in a retrieval: by the estimate where there is one, never without a verdict, and accounted for."""

from dataclasses import replace

import pytest

from meve import Retriever
from meve.errors import ConfigurationError, ModelError
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


class Fixed:
    """An estimator that says always the same, and notes what it was asked."""

    name, threshold = "fixed", 0.6

    def __init__(self, value):
        self.value, self.asked = value, []

    def estimate(self, query, passages):
        self.asked.append((query, [p.passage.id for p in passages]))
        return self.value


@pytest.fixture
def retriever():
    return Retriever.from_texts(
        ["The sky is blue.", "Grass is green."],
        ids=["sky", "grass"], embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter(),
    )  # fmt: skip


def test_without_an_estimator_what_is_verified_decides(retriever):
    context = retriever.retrieve("blue sky")
    assert (context.sufficient, context.sufficiency, context.trace.sufficiency) == (True, None, {})


@pytest.mark.parametrize(("estimate", "enough"), [(0.61, True), (0.6, True), (0.59, False)])
def test_the_estimate_decides_by_its_own_threshold(retriever, estimate, enough):
    retriever.engine = replace(retriever.engine, estimator=Fixed(estimate))
    context = retriever.retrieve("blue sky")
    assert (context.sufficient, context.sufficiency) == (enough, estimate)
    assert context.trace.sufficiency == {"estimator": "fixed", "estimate": estimate, "threshold": 0.6}
    assert retriever.engine.estimator.asked == [("blue sky", ["sky"])]
    assert context.to_dict()["sufficiency"] == estimate


def test_another_threshold_for_one_call(retriever):
    retriever.engine = replace(retriever.engine, estimator=Fixed(0.5))
    assert retriever.retrieve("blue sky", sufficiency_threshold=0.4).sufficient
    assert not retriever.retrieve("blue sky").sufficient
    with pytest.raises(ConfigurationError):
        retriever.retrieve("blue sky", sufficiency_threshold=1.5)


def test_nothing_verified_is_never_enough(retriever):
    retriever.engine = replace(retriever.engine, estimator=Fixed(1.0))
    assert not retriever.retrieve("unknown words").sufficient
    assert not retriever.retrieve("grass whatever else", threshold=1.0, fallback_floor=0.0).sufficient


def test_modes_that_verify_nothing_estimate_nothing(retriever):
    retriever.engine = replace(retriever.engine, estimator=Fixed(1.0))
    assert retriever.retrieve("blue sky", mode="standard_rag").sufficiency is None
    assert retriever.engine.estimator.asked == []


def test_an_estimator_that_fails_is_named(retriever):
    class Broken(Fixed):
        def estimate(self, query, passages):
            raise ZeroDivisionError

    retriever.engine = replace(retriever.engine, estimator=Broken(0))
    with pytest.raises(ModelError, match="'fixed'"):
        retriever.retrieve("blue sky")
