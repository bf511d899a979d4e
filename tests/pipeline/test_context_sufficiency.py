"""Test whether a context is called sufficient."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from meve import Retriever
from meve.errors import ConfigurationError, ModelError
from tests.fake_components import make_components


class FixedEstimator:
    """An estimator that returns a fixed value and records its calls."""

    name, threshold = "fixed", 0.6

    def __init__(self, value):
        self.value, self.calls = value, []

    def estimate(self, query, passages):
        self.calls.append((query, [p.passage.id for p in passages]))
        return self.value


@pytest.fixture
def retriever():
    return Retriever.from_texts(["The sky is blue.", "Grass is green."], ids=["sky", "grass"], **make_components())


def test_without_an_estimator_a_verified_passage_is_sufficient(retriever):
    context = retriever.retrieve("blue sky")
    assert (context.sufficient, context.sufficiency, context.trace.sufficiency) == (True, None, {})


@pytest.mark.parametrize(("estimate", "enough"), [(0.61, True), (0.6, True), (0.59, False)])
def test_estimate_is_compared_with_the_estimators_threshold(retriever, estimate, enough):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(estimate))
    context = retriever.retrieve("blue sky")
    assert (context.sufficient, context.sufficiency) == (enough, estimate)
    because = {} if enough else {"reason": "the estimate 0.59 is below its threshold 0.60"}
    assert context.trace.sufficiency == {"estimator": "fixed", "estimate": estimate, "threshold": 0.6, **because}
    assert retriever.engine.estimator.calls == [("blue sky", ["sky"])]
    assert context.to_dict()["sufficiency"] == estimate


def test_picture_gives_the_verdict_of_the_context(retriever):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.9))
    for question, enough in (("blue sky", True), ("Who won?", False)):
        context = retriever.retrieve(question)
        assert context.sufficient is enough
        assert f"threshold 0.60: {'' if enough else 'not '}sufficient<" in context.trace.to_svg()


@pytest.mark.parametrize(
    ("options", "passages", "said"),
    [
        ({}, 1, "the estimate is 0, since no passage was kept before the context was filled"),
        ({"fill": False}, 0, "the estimate of an empty context is 0"),
        ({"when_insufficient": "abstain"}, 0, "the estimate of an empty context is 0"),
    ],
)
def test_estimate_of_a_filled_context_is_not_called_that_of_an_empty_one(retriever, options, passages, said):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.0))
    context = retriever.retrieve("blue whatever else there is", fallback_k=0, limit=1, **options)
    assert len(context.passages) == passages
    assert context.trace.sufficiency["reason"].endswith(f"; {said}")


def test_numbers_that_round_to_the_same_are_told_apart(retriever):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.5999))
    reason = retriever.retrieve("blue sky").trace.sufficiency["reason"]
    assert reason == "the estimate 0.5999 is below its threshold 0.6000"


def test_trace_names_by_place_what_no_passage_holds(retriever):
    """The trace holds no text of the question."""
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.7))
    question = "blue sky in Bonn in 1843"
    context = retriever.retrieve(question, threshold=0.3)
    missing = context.trace.sufficiency["missing"]
    assert [(each["kind"], question[each["start"] : each["end"]]) for each in missing] == [
        ("name", "Bonn"), ("date", "1843")
    ]  # fmt: skip
    assert context.sufficient, "it is a hint only"


def test_sufficiency_threshold_can_be_overridden_per_call(retriever):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.5))
    assert retriever.retrieve("blue sky", sufficiency_threshold=0.4).sufficient
    assert not retriever.retrieve("blue sky").sufficient
    with pytest.raises(ConfigurationError):
        retriever.retrieve("blue sky", sufficiency_threshold=1.5)


def test_context_without_verified_passages_is_never_sufficient(retriever):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(1.0))
    assert not retriever.retrieve("unknown words").sufficient
    assert not retriever.retrieve("grass whatever else", threshold=1.0, fallback_floor=0.0).sufficient


def test_modes_without_verification_skip_the_estimator(retriever):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(1.0))
    assert retriever.retrieve("blue sky", mode="standard_rag").sufficiency is None
    assert retriever.engine.estimator.calls == []


def test_failing_estimator_is_named_in_the_error(retriever):
    broken = SimpleNamespace(name="fixed", threshold=0.6, estimate=lambda *_: 1 / 0)
    retriever.engine = replace(retriever.engine, estimator=broken)
    with pytest.raises(ModelError, match="'fixed'"):
        retriever.retrieve("blue sky")


@pytest.mark.parametrize("value", [float("nan"), 2.0, -1.0])
def test_estimate_that_is_no_probability_is_refused(retriever, value):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(value))
    with pytest.raises(ModelError, match=r"'fixed' must return a probability in \[0, 1\]"):
        retriever.retrieve("blue sky")


@pytest.mark.parametrize(
    ("question", "options", "reason"),
    [
        (
            "blue whatever else there is",
            {},
            "no passage reaches the threshold 0.5: the best probability is 0.40; without one, an estimate above its "
            "threshold doesn't count",
        ),
        ("blue sky", {"max_tokens": 1}, "no verified passage fits into max_tokens=1"),
        ("blue sky", {"mode": "standard_rag"}, "mode 'standard_rag' verifies no passage"),
        (
            "blue sky",
            {"where": {"lang": "en"}},
            "no passage that matches the filter was found; no passage has 'lang' in its metadata, which the filter "
            "names; known: none",
        ),
        ("blue sky", {"where": lambda metadata: False}, "no passage that matches the filter was found"),
    ],
)
def test_trace_says_why_a_context_is_not_sufficient(retriever, question, options, reason):
    retriever.engine = replace(retriever.engine, estimator=FixedEstimator(0.9))
    context = retriever.retrieve(question, **options)
    assert not context.sufficient
    assert context.trace.sufficiency["reason"] == reason
