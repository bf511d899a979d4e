"""Test what a retrieval does with a context that isn't sufficient."""

import pickle
from dataclasses import replace

import pytest

from meve import Retriever, RetrieverConfig
from meve.errors import ConfigurationError, InsufficientContextError
from tests.fake_components import make_components

TEXTS = {"sky": "blue sky over hills", "sea": "deep blue water", "soil": "brown soil"}
QUESTION = "blue sky zebra today"
"""Shares half of its words with `sky`, one with `sea`, none with `soil`."""


class Fixed:
    """An estimator that gives every context the same estimate."""

    name, threshold = "fixed", 0.5

    def __init__(self, value):
        self.value = value

    def estimate(self, query, passages):
        return self.value


def make(estimate=0.0):
    made = Retriever.from_texts(list(TEXTS.values()), ids=list(TEXTS), **make_components())
    made.engine = replace(made.engine, estimator=Fixed(estimate))
    return made


def verdicts(context):
    return {p.passage.id: p.verified for p in context.passages}


def test_by_default_all_is_returned_and_marked():
    assert RetrieverConfig().when_insufficient == "return"
    assert verdicts(make().retrieve(QUESTION)) == {"sky": True, "sea": False, "soil": False}


@pytest.mark.parametrize("estimate", [0.0, 1.0], ids=["insufficient", "sufficient"])
def test_verified_only_leaves_out_every_unverified_passage(estimate):
    context = make(estimate).retrieve(QUESTION, when_insufficient="verified_only")
    assert verdicts(context) == {"sky": True}
    assert context.text == TEXTS["sky"]
    assert context.sufficient is (estimate == 1.0)
    assert {c.id: c.reason for c in context.trace.candidates}["sea"] == "unverified"


def test_abstain_returns_an_empty_context_whose_trace_says_why():
    context = make().retrieve(QUESTION, when_insufficient="abstain")
    assert (context.text, context.tokens, context.passages, context.sufficient) == ("", 0, (), False)
    assert {c.id: c.reason for c in context.trace.candidates}["sky"] == "insufficient"
    assert context.trace.phases[-1].name == "abstain"


def test_raise_raises_an_error_that_holds_the_context_and_survives_pickling():
    with pytest.raises(
        InsufficientContextError, match=r"the estimate 0.00 is below its threshold 0.50.*when_insuff"
    ) as raised:
        make().retrieve(QUESTION, when_insufficient="raise")
    assert verdicts(raised.value.context) == {"sky": True, "sea": False}
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.context.text) == (str(raised.value), raised.value.context.text)


@pytest.mark.parametrize("way", ["abstain", "raise"])
def test_sufficient_context_is_returned_whole(way):
    assert verdicts(make(1.0).retrieve(QUESTION, when_insufficient=way)) == {"sky": True, "sea": False}


def test_unknown_way_is_rejected_with_the_valid_ones():
    with pytest.raises(ConfigurationError, match=r"when_insufficient must be one of return, verified_only.*'refuse'"):
        make().retrieve(QUESTION, when_insufficient="refuse")


def test_given_passages_follow_the_setting_too():
    engine, passages = make().engine, make().passages()
    assert verdicts(engine.select(QUESTION, passages, when_insufficient="verified_only")) == {"sky": True}
