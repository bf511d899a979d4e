"""Test verification that skips unlikely candidates and duplicates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from meve import Retriever
from meve.components.verification_prior import FEATURES, FittedPrior, extract_candidate_features
from meve.errors import ConfigurationError, ModelError
from meve.pipeline._deadline import BATCH
from meve.pipeline.phases.cascade import LIKELY, cascade, order_by_chance, split_unlikely
from meve.pipeline.phases.verify import verify
from meve.types import Candidate, Passage, Query
from tests.fake_components import make_components

QUERY = Query(text="q", vector=np.array([1.0, 0.0], np.float32))


class FixedScorer:
    """A scorer with fixed scores by id that records the scored ids."""

    name = "verifier"

    def __init__(self, **scores):
        self.scores = scores
        self.scored_ids = []

    def score(self, query, candidates):
        self.scored_ids += [c.id for c in candidates]
        return np.array([self.scores.get(c.id, 0.0) for c in candidates], dtype=np.float32)


class FixedPrior:
    name, least = "chances", 0.2

    def __init__(self, **chances):
        self.given = chances

    def chances(self, query, candidates):
        return np.array([self.given.get(c.id, 1.0) for c in candidates], dtype=np.float32)


def candidate(name, vector=None):
    return Candidate(
        passage=Passage(id=name, text=name),
        origin="dense",
        vector=None if vector is None else np.array(vector, np.float32),
    )


def unrelated_vectors(n):
    """Return n candidates with orthogonal vectors."""
    return [candidate(f"c{i}", np.eye(n)[i]) for i in range(n)]


def fates(selection):
    return [c.id for c in selection.kept], {d.candidate.id: d.reason for d in selection.dropped}


def test_cascade_without_duplicates_or_prior_equals_verify():
    candidates = unrelated_vectors(20)
    scores = {c.id: (i * 7 % 20) / 20 for i, c in enumerate(candidates)}
    ours = cascade(QUERY, candidates, FixedScorer(**scores), 0.5, redundancy=0.85, prior=None)
    exact = verify(QUERY, candidates, FixedScorer(**scores), 0.5)
    assert fates(ours) == fates(exact)
    assert [c.score for c in ours.kept] == [c.score for c in exact.kept]


def test_candidate_below_the_least_chance_is_not_scored():
    scorer = FixedScorer(**dict.fromkeys("abcdef", 0.9))
    prior = FixedPrior(a=0.19, b=0.2, c=0.9, d=0.8, e=0.7, f=0.6)
    selection = cascade(QUERY, [candidate(i) for i in "abcdef"], scorer, 0.5, redundancy=0.85, prior=prior)
    assert scorer.scored_ids == ["c", "d", "e", "f", "b"], "the likeliest first"
    assert fates(selection) == (["b", "c", "d", "e", "f"], {"a": "unlikely"})
    assert selection.dropped[0].candidate.score is None


def test_likeliest_candidates_are_scored_below_the_least_chance_too():
    scorer = FixedScorer(**dict.fromkeys("abcdef", 0.9))
    prior = FixedPrior(**{i: 0.01 * n for n, i in enumerate("abcdef")})
    candidates = [candidate(i) for i in "abcdef"]
    selection = cascade(QUERY, candidates, scorer, 0.5, redundancy=0.85, prior=prior)
    assert scorer.scored_ids == ["f", "e", "d", "c"]
    assert fates(selection)[1] == {"a": "unlikely", "b": "unlikely"}
    scored, dropped = split_unlikely(order_by_chance(QUERY, candidates, None), 0.0)
    assert ([c.id for c in scored], dropped) == (list("abcdef"), [])


def test_duplicate_of_a_verified_candidate_is_not_scored_in_later_batches():
    others = unrelated_vectors(BATCH)
    late = [candidate("copy", np.eye(BATCH)[0]), candidate("again", np.eye(BATCH)[1])]
    scorer = FixedScorer(c0=0.9, c1=0.1, copy=0.9, again=0.9)
    selection = cascade(QUERY, [*others, *late], scorer, 0.5, redundancy=0.85, prior=None)
    kept, dropped = fates(selection)
    assert kept == ["again", "c0"]
    assert dropped["copy"] == "duplicate_of:c0"
    assert "copy" not in scorer.scored_ids


@pytest.mark.parametrize(("cosine", "is_duplicate"), [(0.84, False), (0.86, True)])
def test_only_a_cosine_above_redundancy_is_a_duplicate(cosine, is_duplicate):
    first = [candidate("first", [1.0, 0.0]), *(candidate(f"o{i}", [0.0, 1.0]) for i in range(BATCH - 1))]
    last = candidate("last", [cosine, -np.sqrt(1 - cosine**2)])
    selection = cascade(QUERY, [*first, last], FixedScorer(first=0.9), 0.5, redundancy=0.85, prior=None)
    assert (fates(selection)[1]["last"] == "duplicate_of:first") is is_duplicate


def test_full_budget_leaves_only_likely_candidates():
    """After the first batch, the verified candidate fills the context."""
    chances = {f"c{i}": 0.9 for i in range(BATCH)} | {"c8": LIKELY, "c9": LIKELY - 0.01}
    prior = FixedPrior(**chances)
    prior.least = 0.01
    scorer = FixedScorer(c0=0.9, c8=0.9, c9=0.9)
    selection = cascade(
        QUERY,
        unrelated_vectors(10),
        scorer,
        0.5,
        redundancy=0.85,
        prior=prior,
        is_full=lambda verified: [c.id for c in verified] == ["c0"],
    )
    kept, dropped = fates(selection)
    assert kept == ["c0", "c8"]
    assert dropped["c9"] == "budget_full"
    assert "c9" not in scorer.scored_ids


def test_full_budget_without_a_prior_skips_nothing():
    scorer = FixedScorer(c0=0.9)
    cascade(QUERY, unrelated_vectors(10), scorer, 0.5, redundancy=0.85, prior=None, is_full=lambda _: True)
    assert len(scorer.scored_ids) == 10


@pytest.mark.parametrize(
    ("options", "is_full"),
    [
        ({"max_tokens": 6}, True),
        ({"max_tokens": 7}, False),
        ({"max_tokens": 4, "redundancy": 1.0}, True),
        ({"max_tokens": 2}, False),
        ({"limit": 2}, True),
        ({"limit": 3}, False),
        ({"max_tokens": 6, "packing": "sentences"}, False),
        ({"limit": 2, "packing": "sentences"}, True),
    ],
)
def test_verified_candidates_fill_the_context_by_tokens_or_number(options, is_full):
    """Two distinct passages of three words each are verified; a third is a copy of the first."""
    texts = ["blue sky today", "blue today now", "blue sky today", *(f"blue word{i}" for i in range(BATCH))]
    retriever = Retriever.from_texts(texts, **make_components())
    rare = SimpleNamespace(
        name="rare",
        least=0.0,
        chances=lambda _, found: np.array([0.9 if len(c.passage.text.split()) == 3 else 0.04 for c in found]),
    )
    retriever.engine = replace(retriever.engine, prior=rare)
    context = retriever.retrieve("blue sky today", exact=False, **{"threshold": 0.6, **options})
    reasons = [c.reason for c in context.trace.candidates]
    assert ("budget_full" in reasons) is is_full


def test_no_candidates_ask_no_model():
    assert cascade(QUERY, [], FixedScorer(), 0.5, redundancy=0.85, prior=FixedPrior()).kept == []


PRIOR = FittedPrior(
    name="p", embedder="e", verifier="v", weights=dict.fromkeys(FEATURES, 1.0), intercept=-2.0, least=0.3
)


def test_fitted_prior_features_match_hand_computed_values():
    query = Query(text="blue sky", vector=np.array([1.0, 0.0], np.float32))
    candidates = [
        replace(candidate("a", [1.0, 0.0]), passage=Passage(id="a", text="The blue sky."), keyword_share=1.0),
        replace(candidate("b", [0.6, 0.8]), passage=Passage(id="b", text="A blue car."), keyword_share=0.25),
        replace(candidate("c", [0.0, 1.0]), passage=Passage(id="c", text="Bread."), keyword_share=0.0),
    ]
    expected = [[1.0, 1.0, 1.0, 1.0], [0.6, 0.6, 0.25, 0.5], [0.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(extract_candidate_features(query, candidates), expected, atol=1e-6)
    chances = PRIOR.chances(query, candidates)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(2 - np.sum(expected, axis=1))), atol=1e-6)
    assert PRIOR.chances(query, []).shape == (0,)
    unknown = [replace(candidates[0], keyword_share=None), *candidates[1:]]
    np.testing.assert_array_equal(PRIOR.chances(query, unknown), [1.0, *chances[1:]])
    bare = [replace(candidates[0], vector=None), *candidates[1:]]
    assert PRIOR.chances(query, bare).tolist() == [1.0, 1.0, 1.0], "cosines are relative to the nearest"
    assert FittedPrior.from_dict(PRIOR.to_dict()) == PRIOR


def test_invalid_prior_raises_error():
    for wrong in ({"least": 1.5}, {"weights": {"cosine": 1.0}}, {"intercept": float("nan")}):
        with pytest.raises(ConfigurationError, match="the prior 'p'"):
            replace(PRIOR, **wrong)
    with pytest.raises(ConfigurationError, match="unheard_of"):
        FittedPrior.from_dict({"unheard_of": 1})


def test_inexact_retrieval_traces_unscored_candidates():
    retriever = Retriever.from_texts(["blue sky today"] * (BATCH + 2), **make_components())
    quick, exact = (retriever.retrieve("blue sky today", exact=e).trace for e in (False, True))
    assert quick.phases[1].settings["exact"] is False
    skipped = [c for c in quick.candidates if c.reason.startswith("duplicate_of:")]
    assert len(skipped) == 2
    assert not any("verifier" in c.scores for c in skipped)
    assert all("verifier" in c.scores for c in exact.candidates)


@pytest.mark.parametrize("chances", [[0.9, float("nan"), 0.9], [0.9, 0.9], [0.9] * 4])
def test_prior_without_one_finite_number_each_raises_error(chances):
    odd = SimpleNamespace(name="odd", least=0.2, chances=lambda *_: np.array(chances))
    with pytest.raises(ModelError, match=r"prior 'odd' returned values of shape .*: expected one finite number each"):
        cascade(QUERY, [candidate(i) for i in "abc"], FixedScorer(), 0.5, redundancy=0.85, prior=odd)
