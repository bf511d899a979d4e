"""Test that the budget of a context that isn't sufficient is filled with unverified candidates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from meve import Passage, Retriever, RetrieverConfig
from meve.components._shared_words import shares_words
from meve.pipeline import _packing
from meve.pipeline.phases.fill import FILL, GIVEN, NEAREST, UNRELATED, fill
from meve.types import Candidate, Query
from tests.fake_components import make_components

TEXTS = {
    "sky": "blue sky over hills",
    "sea": "deep blue water",
    "soil": "brown soil",
    "again": "brown soil",
    "stone": "grey rock",
}
QUESTION = "blue sky zebra today"
"""Shares half of its words with `sky`, one with `sea`; `soil` and `again` only begin with its letters."""


class Never:
    """An estimator that calls no context sufficient."""

    name, threshold = "never", 0.5

    def __init__(self):
        self.seen = []

    def estimate(self, query, passages):
        self.seen.append([p.passage.id for p in passages])
        return 0.1


@pytest.fixture
def retriever():
    made = Retriever.from_texts(list(TEXTS.values()), ids=list(TEXTS), **make_components())
    made.engine = replace(made.engine, estimator=Never())
    return made


def test_insufficient_context_is_filled_in_the_order_of_phase_1(retriever):
    context = retriever.retrieve(QUESTION)
    first = retriever.retrieve(QUESTION, fill=False)
    kept = [p.passage.id for p in first.passages]
    added = context.passages[len(kept) :]
    assert [p.passage.id for p in context.passages[: len(kept)]] == kept
    assert {p.passage.text for p in added} == {*TEXTS.values()} - {TEXTS[i] for i in (*kept, "stone")}, (
        "stone has nothing to do with it"
    )
    assert len(added) == len({p.passage.text for p in added}), "no text is added twice"
    assert {(p.origin, p.verified) for p in added} == {(FILL, False)}
    assert not context.sufficient
    reasons = {c.id: c.reason for c in context.trace.candidates}
    assert {reasons[p.passage.id] for p in added} == {FILL}
    assert reasons["stone"] == UNRELATED
    assert [phase.name for phase in context.trace.phases][-1] == "fill"


def test_estimate_is_that_of_the_context_before_it_is_filled(retriever):
    filled, plain = retriever.retrieve(QUESTION), retriever.retrieve(QUESTION, fill=False)
    assert len(filled.passages) > len(plain.passages)
    assert filled.sufficiency == plain.sufficiency
    assert retriever.engine.estimator.seen[0] == retriever.engine.estimator.seen[1]


def test_sufficient_context_is_filled_below_a_bound(retriever):
    lenient = {"sufficiency_threshold": 0.05}
    uncertain = retriever.retrieve(QUESTION, fill_below=0.2, **lenient)
    certain = retriever.retrieve(QUESTION, fill_below=0.1, **lenient)
    assert uncertain.sufficient
    assert certain.sufficient
    assert {p.origin for p in uncertain.passages} > {p.origin for p in certain.passages}
    assert FILL in {p.origin for p in uncertain.passages}
    only_verified = retriever.retrieve(QUESTION, fill_below=0.2, when_insufficient="verified_only", **lenient)
    assert all(p.verified for p in only_verified.passages)


def make_with_skies(texts):
    """Return a retriever over so many texts about a blue sky, and one about water."""
    skies = [f"blue sky over {place}" for place in ("hills", "rocks", "lakes", "trees")[:texts]]
    return Retriever.from_texts([*skies, "blue water"], **make_components())


@pytest.mark.parametrize(("texts", "is_filled"), [(4, True), (3, False)])
def test_context_with_many_verified_passages_is_filled_however_sure_the_estimate(texts, is_filled):
    made = make_with_skies(texts)
    made.engine = replace(made.engine, estimator=SimpleNamespace(name="sure", threshold=0.5, estimate=lambda *_: 1.0))
    settings = {"threshold": 0.6, "redundancy": 1.0, "fallback_floor": 0.99}
    context, bare = (made.retrieve("blue sky", **settings, fill_below=least) for least in (0.5, 0))
    assert sum(p.verified for p in context.passages) == texts
    assert (FILL in {p.origin for p in context.passages}) is is_filled
    assert FILL not in {p.origin for p in bare.passages}


@pytest.mark.parametrize(("texts", "by_score"), [(4, False), (3, True)])
def test_scores_decide_the_order_unless_many_passages_are_verified(texts, by_score, monkeypatch):
    asked = []
    monkeypatch.setattr(_packing, "fill", lambda *args, **options: asked.append(options) or fill(*args, **options))
    made = make_with_skies(texts)
    made.engine = replace(made.engine, estimator=Never())
    made.retrieve("blue sky", threshold=0.6, redundancy=1.0, fallback_floor=0.99)
    assert [options["by_score"] for options in asked] == [by_score]


@pytest.mark.parametrize(
    "options",
    [{"fill": False}, {"mode": "no_fallback"}, {"packing": "sentences"}, {"limit": 2}, {"max_tokens": 8}],
)
def test_fill_stays_within_settings(retriever, options):
    context = retriever.retrieve(QUESTION, **options)
    plain = retriever.retrieve(QUESTION, **{**options, "fill": False})
    assert [p.passage.id for p in context.passages] == [p.passage.id for p in plain.passages]


def test_sufficient_context_is_not_filled(retriever):
    retriever.engine = replace(retriever.engine, estimator=None)
    context = retriever.retrieve("blue sky")
    assert context.sufficient
    assert FILL not in {p.origin for p in context.passages}


def test_filled_candidates_keep_their_scores():
    low = Candidate(passage=Passage(id="low", text="low"), origin="dense")
    unscored = Candidate(passage=Passage(id="unscored", text="unscored"), origin="dense")
    judged = {"low": low.with_score("verifier", 0.2)}
    chosen = fill([], [low, unscored], judged).kept
    assert [(c.id, c.score, c.origin, c.verified) for c in chosen] == [
        ("low", 0.2, FILL, False), ("unscored", None, FILL, False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "verified", "kept"), [(GIVEN, False, NEAREST), (GIVEN, True, 0), ("dense", False, 0)]
)
def test_first_given_passages_stay_whatever_their_cosine_where_nothing_is_verified(origin, verified, kept):
    """The search that gave them says that they are the nearest; a verified passage says more."""
    axes = np.eye(2, dtype=np.float32)
    far = [Candidate(passage=Passage(id=f"{n}", text=f"far {n}"), origin=origin, vector=axes[1]) for n in range(7)]
    packed = [Candidate(passage=Passage(id="found", text="found"), origin=origin, verified=True)] if verified else []
    filled = fill(packed, far, {}, query=Query(text="q", vector=axes[0]))
    assert [c.id for c in filled.kept[len(packed) :]] == [f"{n}" for n in range(kept)]
    assert {d.reason for d in filled.dropped} == {UNRELATED}


def test_dropped_duplicates_do_not_come_back():
    texts = ["room 1 seats eight people", "room 2 seats eight people", "grey room"]
    made = Retriever.from_texts(texts, ids=["a", "b", "stone"], **make_components())
    made.engine = replace(made.engine, estimator=Never())
    options = {"redundancy": 0.5, "threshold": 0.3, "duplicates": "similar"}
    context = made.retrieve("how many people fit into room", **options)
    assert [p.passage.id for p in context.passages] == ["a", "stone"]


def test_paper_neither_fills_nor_compares_texts():
    paper = RetrieverConfig.paper()
    assert (paper.fill, paper.duplicates) == (False, "similar")


def test_given_passages_that_miss_the_threshold_are_returned_unverified(retriever):
    """Also without a fallback source, the best of those that reach the floor."""
    passages = [Passage(id=i, text=text) for i, text in TEXTS.items()]
    context = retriever.engine.select(QUESTION, passages, threshold=0.9, fallback_k=1, fill=False)
    assert [(p.passage.id, p.origin, p.verified) for p in context.passages] == [("sky", "fallback", False)]
    assert not context.sufficient
    assert retriever.engine.select(QUESTION, passages, threshold=0.9, fallback_floor=0.8, fill=False).passages == ()


def test_budget_too_small_for_the_verified_passage_is_not_filled_with_others(retriever):
    """A small wrong passage in its place would be all that the reader sees."""
    long = "blue sky zebra today " + "and more of it " * 10
    retriever.add([Passage(id="long", text=long)])
    context = retriever.retrieve(QUESTION, max_tokens=20, threshold=0.9, fallback_floor=0.9)
    assert context.passages == ()
    assert context.trace.sufficiency["reason"] == "no verified passage fits into max_tokens=20"
    assert {c.id: c.reason for c in context.trace.candidates}["long"] == "over_budget"


def test_budget_too_small_for_what_the_fallback_verified_is_not_filled_either():
    long = "zebra blue sky " + "and more of it " * 10
    made = Retriever.from_texts(["bees suck", "big sacks", long], ids=["near", "next", "long"], **make_components())
    context = made.retrieve("blue sky", sources="dense", candidates=2, max_tokens=20)
    assert context.passages == ()
    assert context.trace.sufficiency["reason"] == "no verified passage fits into max_tokens=20"
    assert {c.id: c.reason for c in context.trace.candidates}["long"] == "over_budget"


def test_low_cosine_leaves_out_only_what_the_verifier_does_not_relate_either():
    question, far = np.array([1.0, 0.0], dtype=np.float32), np.array([0.1, 1.0], dtype=np.float32)
    both = [
        Candidate(passage=Passage(id=name, text=name), origin="dense", vector=far, scores={"logit": logit})
        for name, logit in (("near", 0.5), ("far", -0.5))
    ]
    filled = fill([], both, {}, query=Query(text="q", vector=question))
    assert [c.id for c in filled.kept] == ["near"]
    assert [(d.candidate.id, d.reason) for d in filled.dropped] == [("far", UNRELATED)]


CODES = (
    "Errors. E1: the drum is blocked. E2: no water. E3: the thermostat fails; unplug the device and call the service. "
    "E4: the lid is open. Cleaning: wipe the housing with a damp cloth, never with solvents. Dr. Ingrid Holm, Aarhus, "
    "designed the device in 2019. Guarantee: two years, except for wearing parts such as belts and brushes."
)


@pytest.mark.parametrize("question", ["What does E3 mean?", "e4", "Who is Ingrid Holm?", "Aarhus", "what is 2019"])
def test_passage_with_the_name_or_code_of_a_question_is_filled_in(question):
    """Its vector hardly shows them; keyword search finds the passage."""
    others = ["The hut opens at nine.", "Bread is baked on Mondays.", "Boats need a licence here."]
    context = Retriever.from_texts([CODES, *others]).retrieve(question)
    assert CODES in [p.passage.text for p in context.passages]
    assert not any(p.passage.text in others for p in context.passages)


@pytest.mark.parametrize(
    ("question", "is_filled"),
    [
        ("When was the north tower of the cathedral built?", False),
        ("How high is the tower of the parking garage?", True),
        ("Is there a place for cars of class A42?", True),
        ("Is there a place for cars in 1990, or the 1990s?", False),
        ("How?", False),
    ],
)
def test_passage_far_from_the_question_needs_most_of_its_words_or_a_code(question, is_filled):
    axes = np.eye(2, dtype=np.float32)
    garage = Passage(
        id="p", text="The parking garage at the north gate, by the tower. Class A42, of 1990, for the 1990s."
    )
    query = Query(text=question, vector=axes[0])
    far = Candidate(passage=garage, origin="dense", vector=axes[1])
    filled = fill([], [far], {}, query=query, shares_words=shares_words)
    assert bool(filled.kept) is is_filled
    assert [d.reason for d in filled.dropped] == ([] if is_filled else [UNRELATED])


def test_candidates_that_hardly_relate_to_the_question_come_last():
    cosines = {"hardly": 0.17, "near": 0.3, "also": 0.19, "nearer": 0.4, "apart": 0.1}
    given = [
        Candidate(
            passage=Passage(id=name, text=name),
            origin="dense",
            vector=np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32),
        )
        for name, cosine in cosines.items()
    ]
    filled = fill([], given, {}, query=Query(text="q", vector=np.array([1, 0], dtype=np.float32)))
    assert [c.id for c in filled.kept] == ["near", "nearer", "hardly", "also"]
    assert [(d.candidate.id, d.reason) for d in filled.dropped] == [("apart", UNRELATED)]


def test_score_decides_the_order_and_phase_1_that_of_candidates_without_one():
    given = [Candidate(passage=Passage(id=name, text=name), origin="dense") for name in ("z", "low", "a", "high")]
    judged = {name: given[n].with_score("verifier", score) for n, name, score in ((1, "low", 0.1), (3, "high", 0.3))}
    assert [c.id for c in fill([], given, judged).kept] == ["high", "low", "z", "a"]
    assert [c.id for c in fill([], given, judged, by_score=False).kept] == ["z", "low", "a", "high"]
