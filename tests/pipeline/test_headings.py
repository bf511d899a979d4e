"""Passages below headings: counted once each, numbered by rank, and cut where a small budget can't hold the best."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from meve.components.tokenizers import resolve_tokens
from meve.components.tokenizers.function import FunctionTokens
from meve.pipeline.phases.budget import SMALL, budget
from meve.types import Candidate, Passage

COUNTERS = [resolve_tokens(None), FunctionTokens(lambda text: -(-len(text) // 4))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated(Passage):
    day: str

    @property
    def heading(self):
        return self.day


def dated(id, words, day):
    return Candidate(passage=Dated(id=id, text=" ".join([id] * words), day=day), origin="given")


def cut(candidate, most):
    """Return a candidate with as many words as tokens are allowed."""
    text = " ".join(candidate.passage.text.split()[:most])
    return replace(candidate, passage=candidate.passage.with_text(text), tokens=most, sentences=(0,))


@pytest.mark.parametrize("counter", COUNTERS, ids=["adds up", "doesn't"])
@pytest.mark.parametrize("max_tokens", range(1, 60, 4))
def test_headings_count_towards_the_budget(counter, max_tokens):
    given = [dated(f"p{n}", 3 + n % 2, f"day {n % 3}:") for n in range(8)]
    packed = budget(given, counter, max_tokens=max_tokens, separator="\n", citations=True)
    assert packed.tokens == counter.count(packed.text) <= max_tokens
    assert all(packed.text.count(f"day {n}:") <= 1 for n in range(3))


def test_numbers_are_ranks_and_headings_stand_where_their_first_passage_would():
    given = [dated("a", 1, "monday:"), dated("b", 1, "friday:"), dated("c", 1, "monday:"), dated("d", 1, "")]
    packed = budget(given, COUNTERS[0], max_tokens=100, separator="\n", citations=True)
    assert packed.text.splitlines() == ["monday:", "[1] a", "[3] c", "friday:", "[2] b", "[4] d"]
    assert [c.id for c in packed.selection.kept] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("words", "max_tokens", "kept"),
    [
        (100, 150, 50),  # half of the second fits
        (100, 130, 0),  # less than two fifths of it do
        (200, SMALL, 56),
        (200, SMALL + 1, 0),
    ],
)
def test_small_budget_cuts_one_of_the_best_if_enough_of_it_fits(words, max_tokens, kept):
    counter = FunctionTokens(lambda text: len(text.split()))
    given = [dated("a", 100 if words == 100 else 200, ""), dated("b", 140 if words == 200 else 100, "")]
    packed = budget(given, counter, max_tokens=max_tokens, separator=" ", cut=cut)
    assert packed.text.split().count("b") == kept
    assert packed.tokens == counter.count(packed.text) <= max_tokens


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ((1_000, 20, 20), {"a": 360, "b": 20, "c": 20}),
        ((20, 1_000, 20), {"a": 20, "c": 20}),  # not the best
        ((100, 350, 20), {"a": 100, "c": 20}),  # fits by itself
    ],
)
def test_larger_budget_cuts_the_best_if_it_exceeds_the_budget_by_itself(words, kept):
    counter = FunctionTokens(lambda text: len(text.split()))
    given = [dated(id, count, "") for id, count in zip("abc", words, strict=True)]
    packed = budget(given, counter, max_tokens=400, separator=" ", cut=cut)
    assert Counter(packed.text.split()) == kept
    assert packed.tokens == sum(kept.values())


def test_only_the_first_three_are_cut():
    counter = FunctionTokens(lambda text: len(text.split()))
    given = [dated(id, words, "") for id, words in (("a", 20), ("b", 20), ("c", 20), ("d", 60))]
    packed = budget(given, counter, max_tokens=100, separator=" ", cut=cut)
    assert [c.id for c in packed.selection.kept] == ["a", "b", "c"]
    assert [(d.candidate.id, d.reason) for d in packed.selection.dropped] == [("d", "over_budget")]
