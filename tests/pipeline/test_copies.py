"""Test that copies take no places, and the order that prefers what is unlike."""

from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError
from meve.pipeline.phases.prioritize import diversify, drop_copies
from meve.types import Candidate
from tests.fake_components import make_components

SEA = "the wide blue sea lies under a sky of summer"
HILL = "a blue sky stands over every quiet hill today"
QUESTION = "blue sky"


def candidate(name, vector, score=0.5, *, verified=True):
    vector = np.array(vector, dtype=np.float32)
    return Candidate(passage=Passage(id=name, text=name), origin="x", vector=vector, score=score, verified=verified)


def make(texts):
    return Retriever.from_texts(list(texts.values()), ids=list(texts), **make_components())


def test_copies_of_verified_passages_do_not_keep_the_fallback_from_running():
    """Two verified passages and their copies are four, where three are wanted."""
    texts = {"sea": SEA, "sea copy": SEA + ".", "hill": HILL, "hill copy": HILL + "!", "half": "a blue lamp"}
    context = make(texts).retrieve(QUESTION, threshold=0.9)
    assert [p.passage.id for p in context.passages if p.verified] == ["hill", "sea"]
    assert "half" in [p.passage.id for p in context.passages if p.origin == "fallback"]
    paper = make(texts).retrieve(QUESTION, threshold=0.9, duplicates="similar")
    phase = next(phase for phase in paper.trace.phases if phase.name == "fallback")
    assert phase.skipped == "4 accepted, 3 wanted"


@pytest.mark.parametrize("diversify", [0.0, 0.1])
def test_a_copy_is_packed_if_what_it_repeats_does_not_fit(diversify):
    texts = {
        "first": "blue sky today zebra " + "word " * 26,
        "long": "The blue sky is wide. Today it stays like that for much longer than before.",
        "copy": "The blue sky is wide.",
        "copy of it": "the blue sky is wide",
        "weak": "blue water",
    }
    retriever = make(texts)
    settings = {"threshold": 0.4, "redundancy": 0.3, "fallback_floor": 0.0, "fill": False, "diversify": diversify}
    narrow = retriever.retrieve("blue sky today zebra", max_tokens=40, **settings)
    assert [p.passage.id for p in narrow.passages] == ["first", "copy", "weak"]
    assert narrow.tokens <= 40
    reasons = {c.id: c.reason for c in narrow.trace.candidates}
    assert (reasons["copy"], reasons["long"], reasons["copy of it"][:14]) == (
        "verified", "over_budget", "redundant_with",
    )  # fmt: skip
    wide = retriever.retrieve("blue sky today zebra", max_tokens=60, **settings)
    assert [p.passage.id for p in wide.passages] == ["first", "long", "weak"]


@pytest.mark.parametrize("sources", ["hybrid", "dense"])
def test_copies_take_no_place_among_those_of_the_fallback(sources):
    texts = {f"copy {n}": f"a blue lamp{'.' * n}" for n in range(6)} | {"other": "the blue zinc kettle"}
    context = make(texts).retrieve(QUESTION, threshold=0.9, fallback_k=2, fill=False, sources=sources)
    assert len(context.passages) == 2
    assert "other" in [p.passage.id for p in context.passages]


def test_drop_copies_keeps_the_first_and_what_is_unlike_or_has_no_vector():
    first, near, far = candidate("a", [1, 0]), candidate("b", [0.99, 0.05]), candidate("c", [0, 1])
    bare = replace(near, vector=None)
    assert drop_copies([first, near, far, bare], (), 0.85) == [first, far, bare]
    assert drop_copies([near, far], [first], 0.85) == [far]
    assert drop_copies([first, near], (), 0.85, lambda *_: "") == [first, near]


def test_diversify_puts_what_is_unlike_first_and_drops_none():
    best, near, far = candidate("a", [1, 0], 0.9), candidate("b", [1, 0.1], 0.8), candidate("c", [0, 1], 0.6)
    unverified = candidate("d", [-1, 0], 0.95, verified=False)
    given = [best, near, far, unverified]
    vectors = np.array([c.vector for c in given])
    assert diversify(given, vectors, 0.5) == [best, far, near, unverified]
    assert diversify(given, vectors, 0.0) == given
    assert diversify([], np.zeros((0, 1)), 0.5) == []


def test_diversify_is_a_setting():
    texts = {"one": HILL, "two": f"{HILL} again and again", "three": "a blue zinc box with a sky"}
    retriever = make(texts)
    plain = retriever.retrieve(QUESTION, limit=2)
    mixed = retriever.retrieve(QUESTION, limit=2, diversify=0.7)
    assert [p.passage.id for p in plain.passages] == ["one", "two"] or len(plain.passages) == 2
    assert "three" in [p.passage.id for p in mixed.passages]
    assert {p.name: p.settings for p in mixed.trace.phases}["prioritize"]["diversify"] == 0.7
    with pytest.raises(ConfigurationError, match="diversify must be between 0 and 1"):
        retriever.retrieve(QUESTION, diversify=2)
