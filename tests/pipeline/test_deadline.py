"""Test that verification keeps to a deadline, and accounts for what it leaves unscored."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve import Passage, Retriever
from meve.pipeline._deadline import BATCH, DEADLINE, FIRST_BATCH, Deadline
from meve.pipeline.phases.cascade import cascade, order_by_chance
from meve.pipeline.phases.fallback import fallback
from meve.pipeline.phases.follow import follow
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import verify
from meve.testing.fakes import FakeClock, OverlapVerifier
from meve.types import Candidate, Query
from tests.fake_components import make_components

QUERY = Query(text="q", vector=np.array([1.0, 0.0], np.float32))
EACH = 0.125
"""The seconds that scoring one candidate takes; a power of two, so that sums are exact."""


class TimedScorer:
    """A scorer with fixed scores by id that advances a clock by a fixed time per candidate."""

    name = "verifier"

    def __init__(self, clock, scores, seconds=None):
        self.clock, self.scores, self.seconds = clock, scores, seconds or {}
        self.batches = []

    def score(self, query, candidates):
        self.batches.append([c.id for c in candidates])
        self.clock.advance(timedelta(seconds=sum(self.seconds.get(c.id, EACH) for c in candidates)))
        return np.array([self.scores.get(c.id, 0.0) for c in candidates])

    @property
    def scored_ids(self):
        return [i for batch in self.batches for i in batch]


class CachingScorer(TimedScorer):
    """A scorer that has the first scores in a cache."""

    def __init__(self, clock, known):
        super().__init__(clock, {}, {f"c{n:02}": 0.0 for n in range(known)})

    def has_read(self, query, candidates):
        return [c.id in self.seconds for c in candidates]


class TimedVerifier(OverlapVerifier):
    """A verifier that advances a clock for every passage and records the passages."""

    clock = FakeClock(step=0)
    read: list[str]

    def raw_scores(self, query, passages):
        self.read.extend(passages)
        self.clock.advance(timedelta(seconds=EACH * len(passages)))
        return super().raw_scores(query, passages)


class ListSource:
    def __init__(self, name, *candidates):
        self.name, self.candidates, self.searches = name, candidates, 0

    def search(self, query, k):
        self.searches += 1
        return self.candidates[:k]


class FixedPrior:
    name, least = "chances", 0.1

    def __init__(self, **chances):
        self.given = chances

    def chances(self, query, candidates):
        return np.array([self.given[c.id] for c in candidates])


def candidate(name, vector=None, **values):
    vector = None if vector is None else np.array(vector, np.float32)
    return Candidate(passage=Passage(id=name, text=name), origin="dense", vector=vector, **values)


def unrelated(n):
    return [candidate(f"c{i:02}", np.eye(max(n, 2))[i]) for i in range(n)]


def still(seconds):
    """Return a clock that only scorers advance, and a deadline on it."""
    clock = FakeClock(step=0)
    return clock, Deadline(clock, seconds)


def run_verify(candidates, scorer, deadline):
    return verify(QUERY, candidates, scorer, 0.5, deadline=deadline)


def run_cascade(candidates, scorer, deadline):
    return cascade(QUERY, candidates, scorer, 0.5, redundancy=0.85, prior=None, deadline=deadline)


both_ways = pytest.mark.parametrize("run", [run_verify, run_cascade])


def fates(selection):
    return [(c.id, c.score) for c in selection.kept], {d.candidate.id: d.reason for d in selection.dropped}


class TestBatches:
    @both_ways
    def test_batches_fill_the_time_and_the_rest_is_dropped_unscored(self, run):
        clock, deadline = still(seconds=(FIRST_BATCH + BATCH + 3.5) * EACH)
        scorer = TimedScorer(clock, {})
        selection = run(unrelated(20), scorer, deadline)
        assert [len(batch) for batch in scorer.batches] == [FIRST_BATCH, BATCH, 3]
        late = [d.candidate for d in selection.dropped if d.reason == DEADLINE]
        assert [c.id for c in late] == [f"c{i}" for i in range(15, 20)]
        assert all(c.score is None and not c.scores for c in late)

    @both_ways
    def test_first_batch_is_scored_even_if_the_time_is_up(self, run):
        clock, deadline = still(seconds=1)
        clock.advance(timedelta(seconds=9))
        scorer = TimedScorer(clock, {"c00": 0.9})
        selection = run(unrelated(20), scorer, deadline)
        assert len(scorer.scored_ids) == FIRST_BATCH
        assert [c.id for c in selection.kept] == ["c00"]

    @both_ways
    def test_long_passages_count_as_several(self, run):
        long = [replace(c, passage=c.passage.with_text("word " * 700)) for c in unrelated(9)]  # three readings each
        clock, deadline = still(seconds=(1 + 2 + 1.5) * EACH)
        scorer = TimedScorer(clock, {})
        run(long, scorer, deadline)
        assert [len(batch) for batch in scorer.batches] == [1, 2, 1]

    def test_free_scoring_takes_full_batches(self):
        clock, deadline = still(seconds=1)
        scorer = TimedScorer(clock, {}, dict.fromkeys((c.id for c in unrelated(20)), 0.0))
        assert not [d for d in run_verify(unrelated(20), scorer, deadline).dropped if d.reason == DEADLINE]
        assert [len(batch) for batch in scorer.batches] == [FIRST_BATCH, BATCH, BATCH]

    @pytest.mark.parametrize(("seconds", "batches"), [(9 * EACH, [8, 5]), (3 * EACH, [8])])
    def test_cached_scores_take_no_time_and_tell_no_pace(self, seconds, batches):
        """Asked again, a question has as many cached scores as there was time for; four more are read."""
        clock, deadline = still(seconds)
        scorer = CachingScorer(clock, known=4)
        run_verify(unrelated(20), scorer, deadline)
        assert [len(batch) for batch in scorer.batches] == batches

    @pytest.mark.parametrize(("seconds", "batches"), [(0.5, [["c00"]]), (5, [["c00"], ["c01"]])])
    def test_long_passage_after_cached_ones_is_not_read_without_time_for_it(self, seconds, batches):
        clock, deadline = still(seconds)
        short, long = unrelated(2)
        scorer = CachingScorer(clock, known=1)
        run_verify([short, replace(long, passage=long.passage.with_text("word " * 4_000))], scorer, deadline)
        assert scorer.batches == batches

    def test_without_a_deadline_all_candidates_are_scored_in_one_call(self):
        scorer = TimedScorer(FakeClock(), {})
        verify(QUERY, unrelated(20), scorer, 0.5)
        assert [len(batch) for batch in scorer.batches] == [20]

    @pytest.mark.parametrize(("candidates", "fits"), [(3, True), (4, False)])
    def test_time_for_more_is_predicted_from_the_last_batch(self, candidates, fits):
        clock, deadline = still(seconds=3.5 * EACH + EACH)
        deadline.start_batch(unrelated(1))
        clock.advance(timedelta(seconds=EACH))
        deadline.end_batch()
        assert deadline.has_time_for(candidates) is fits

    def test_nothing_fits_when_the_time_is_up(self):
        clock, deadline = still(seconds=1)
        assert deadline.has_time_for(1)
        clock.advance(timedelta(seconds=1))
        assert not deadline.has_time_for(0)


stories = st.lists(
    st.tuples(st.floats(0, 1, allow_subnormal=False), st.sampled_from([0.0, EACH, 8 * EACH])), max_size=40
)


@both_ways
@settings(max_examples=60, deadline=None)
@given(story=stories, seconds=st.floats(0.01, 10))
def test_deadline_holds_within_one_batch_and_loses_nothing(run, story, seconds):
    """Each candidate has one fate, each verified one is kept, and only the last batch may exceed the deadline."""
    candidates = unrelated(len(story))
    scores = {c.id: score for c, (score, _) in zip(candidates, story, strict=True)}
    times = {c.id: each for c, (_, each) in zip(candidates, story, strict=True)}
    clock, deadline = still(seconds)
    start = clock.elapsed()
    scorer = TimedScorer(clock, scores, times)
    selection = run(candidates, scorer, deadline)
    ids = [c.id for c in selection.kept] + [d.candidate.id for d in selection.dropped]
    assert sorted(ids) == [c.id for c in candidates]
    assert scorer.scored_ids == [c.id for c in candidates][: len(scorer.scored_ids)]
    assert {c.id for c in selection.kept} == {i for i in scorer.scored_ids if scores[i] >= 0.5}
    assert {d.candidate.id for d in selection.dropped if d.reason == DEADLINE} == set(ids) - set(scorer.scored_ids)
    if len(scorer.batches) > 1:
        before_the_last = clock.elapsed() - start - sum(times[i] for i in scorer.batches[-1])
        assert before_the_last <= seconds


@both_ways
@settings(max_examples=60, deadline=None)
@given(scores=st.lists(st.floats(0, 1), max_size=40))
def test_distant_deadline_changes_no_verdict(run, scores):
    candidates = unrelated(len(scores))
    given_scores = {c.id: score for c, score in zip(candidates, scores, strict=True)}
    clock, deadline = still(seconds=1e9)
    assert fates(run(candidates, TimedScorer(clock, given_scores), deadline)) == fates(
        run(candidates, TimedScorer(clock, given_scores), None)
    )


class TestOrder:
    FOUND = (
        ListSource("dense", *(candidate(i) for i in ("a", "b", "d", "c"))),
        ListSource("lexical", *(candidate(i, scores={"lexical": 1.0}) for i in ("x", "c"))),
    )

    def test_without_a_prior_the_sources_take_turns(self):
        """Candidate c is fourth in the first source and second in the other, so the second rank counts."""
        found = retrieve(QUERY, self.FOUND, 9)
        assert [c.id for c in found] == ["a", "b", "d", "c", "x"]
        assert order_by_chance(QUERY, found, None) == [
            (found["abdcx".index(name)], 1.0) for name in ("a", "x", "b", "c", "d")
        ]

    def test_with_a_prior_the_likeliest_comes_first(self):
        ordered = order_by_chance(
            QUERY, retrieve(QUERY, self.FOUND, 9), FixedPrior(a=0.125, b=0.875, c=0.25, d=0.5, x=0.5)
        )
        assert [(c.id, chance) for c, chance in ordered] == [
            ("b", 0.875), ("x", 0.5), ("d", 0.5), ("c", 0.25), ("a", 0.125)
        ]  # fmt: skip

    def test_cascade_without_a_prior_scores_in_that_order(self):
        found = [replace(c, vector=np.eye(5)[n]) for n, c in enumerate(retrieve(QUERY, self.FOUND, 9))]
        scorer = TimedScorer(FakeClock(step=0), {})
        run_cascade(found, scorer, None)
        assert scorer.scored_ids == ["a", "x", "b", "c", "d"]


class TestLaterPhases:
    ACCEPTED = candidate("start", score=0.9, scores={"verifier": 0.9}, verified=True)

    def test_hop_names_new_candidates_without_a_score_and_keeps_known_verdicts(self):
        clock, deadline = still(seconds=(FIRST_BATCH + 0.5) * EACH)
        old = candidate("old", score=0.2, scores={"verifier": 0.2})
        new = [candidate(f"n{i}") for i in range(FIRST_BATCH + 1)]
        result = follow(
            QUERY,
            [self.ACCEPTED],
            {"start": self.ACCEPTED, "old": old},
            [self.ACCEPTED, candidate("other", score=0.8, verified=True)],
            sources=[source := ListSource("dense", *new, old)],
            scorer=TimedScorer(clock, {"n0": 0.9}),
            embed=lambda query: query,
            k=20,
            threshold=0.5,
            words=9,
            deadline=deadline,
        )
        kept, dropped = fates(result.selection)
        assert [i for i, _ in kept] == ["start", "n0"]
        assert dropped == {"n1": "below_threshold", "n2": "below_threshold", "n3": "below_threshold", "n4": DEADLINE}
        assert result.judged["old"] is old
        assert "n4" not in result.judged
        assert source.searches == 1, "no search with the second passage: the time is up"

    def test_fallback_drops_candidates_without_a_score(self):
        clock, deadline = still(seconds=EACH)
        hits = [candidate(f"n{i}") for i in range(FIRST_BATCH + 1)]
        selection = fallback(
            QUERY,
            [],
            {},
            source=ListSource("store", *hits),
            scorer=TimedScorer(clock, {h.id: 0.3 for h in hits}),
            k=9,
            floor=0.1,
            threshold=0.5,
            deadline=deadline,
        )
        kept, dropped = fates(selection)
        assert len(kept) == FIRST_BATCH
        assert dropped == {"n4": DEADLINE}


TEXTS = ["blue sky today. grass", *(f"blue word{i} other{i}. more{i}" for i in range(9)), "yellow sky"]


@pytest.fixture
def retriever():
    verifier = TimedVerifier()
    verifier.clock, verifier.read = FakeClock(step=0), []
    retriever = Retriever.from_texts(TEXTS, **make_components(verifier=verifier))
    retriever.engine = replace(retriever.engine, clock=verifier.clock)
    return retriever


def skipped(context):
    return {phase.name: phase.skipped for phase in context.trace.phases if phase.skipped}


@pytest.mark.parametrize("exact", [True, False])
def test_trace_has_each_candidate_once_and_names_the_unscored(retriever, exact):
    context = retriever.retrieve("blue sky today", exact=exact, deadline=EACH, redundancy=1.0)
    read = retriever.engine.verifier.read
    assert len(read) == FIRST_BATCH
    candidates = context.trace.candidates
    assert len({c.id for c in candidates}) == len(candidates) == len(TEXTS)
    late = [c for c in candidates if c.reason == DEADLINE]
    assert len(late) == len(TEXTS) - FIRST_BATCH
    assert all((c.fate, c.phase, c.verified) == ("dropped", "verify", False) for c in late)
    assert not any("verifier" in c.scores for c in late)
    settings = context.trace.phases[1].settings
    assert (settings["deadline"], settings["prior"]) == (EACH, "")
    assert [p.passage.text for p in context.passages if p.verified] == [TEXTS[0]]
    assert all(p.score is not None for p in context.passages)


@pytest.mark.parametrize("exact", [True, False])
def test_retrieval_with_a_distant_deadline_returns_the_same_context(retriever, exact):
    options = {"exact": exact, "hops": 2, "packing": "sentences", "threshold": 0.3, "redundancy": 1.0}
    far, none = (retriever.retrieve("blue sky today", deadline=d, **options) for d in (1e6, None))
    assert far.passages == none.passages
    assert far.text == none.text
    assert {(c.id, c.fate, c.reason) for c in far.trace.candidates} == {
        (c.id, c.fate, c.reason) for c in none.trace.candidates
    }


def test_prior_decides_what_is_scored_in_time_and_reads_vectors(retriever):
    """Given passages have no stored vectors, so they are embedded."""

    class LongestFirst(FixedPrior):
        def chances(self, query, candidates):
            return np.array([len(c.passage.text) / 99 for c in candidates if c.vector is not None])

    engine = replace(retriever.engine, prior=LongestFirst())
    context = engine.select("blue sky today", [Passage(id=t, text=t) for t in TEXTS], deadline=EACH)
    assert sorted(engine.verifier.read) == sorted(sorted(TEXTS, key=len, reverse=True)[:FIRST_BATCH])
    assert context.trace.phases[1].settings["prior"] == "chances"


def test_time_begins_before_the_embedding_of_the_query(retriever):
    clock = retriever.engine.clock
    embedder = retriever.engine.embedder

    class Slow(type(embedder)):
        def embed_query(self, text):
            clock.advance(timedelta(seconds=100))
            return super().embed_query(text)

    retriever.engine = replace(retriever.engine, embedder=Slow())
    retriever.retrieve("blue sky today", deadline=99.0)
    assert len(retriever.engine.verifier.read) == FIRST_BATCH


def test_hops_sentences_and_another_search_are_left_out_when_the_time_is_up(retriever):
    options = {"hops": 2, "packing": "sentences", "sources": "dense", "threshold": 0.6, "fallback_floor": 0.2}
    context = retriever.retrieve("blue sky today", deadline=EACH, redundancy=1.0, **options)
    assert skipped(context) == {"follow": DEADLINE, "condense": DEADLINE}
    assert len(retriever.engine.verifier.read) == FIRST_BATCH
    assert context.passages[0].passage.text == TEXTS[0], "a whole passage"
    phase = next(p for p in context.trace.phases if p.name == "fallback")
    assert phase.settings["source"] == "rejected"
    assert {p.origin for p in context.passages if not p.verified} == {"fallback"}


def test_search_for_the_fallback_keeps_to_the_deadline(retriever):
    options = {"candidates": 2, "sources": "dense", "fallback_k": 8, "min_verified": 9, "redundancy": 1.0}
    context = retriever.retrieve("blue sky today", deadline=4.5 * EACH, **options)
    assert len(retriever.engine.verifier.read) == 4
    late = [c for c in context.trace.candidates if c.reason == DEADLINE]
    assert late
    assert {c.phase for c in late} == {"fallback"}


@pytest.mark.parametrize("mode", ["no_verification", "standard_rag"])
def test_modes_without_verification_ignore_the_deadline(retriever, mode):
    retriever.engine = replace(retriever.engine, clock=FakeClock(step=1.0))
    options = {"mode": mode, "candidates": 2, "sources": "dense", "fallback_k": 8, "min_verified": 9}
    late, none = (retriever.retrieve("blue sky today", deadline=d, **options) for d in (0.5, None))
    assert [(c.id, c.reason) for c in late.trace.candidates] == [(c.id, c.reason) for c in none.trace.candidates]


def test_sentences_are_left_out_if_they_would_exceed_the_deadline(retriever):
    """All candidates are scored with less time left than the passages of the context took."""
    total = len(TEXTS) * EACH
    options = {"packing": "sentences", "threshold": 0.3, "fallback_k": 0, "redundancy": 1.0}
    context = retriever.retrieve("blue sky today", deadline=total + 2 * EACH, **options)
    assert len(context.passages) > 2
    assert skipped(context)["condense"] == DEADLINE
    context = retriever.retrieve("blue sky today", deadline=3 * total, **options)
    assert "condense" not in skipped(context)


def test_bundled_verifier_ends_early_and_names_the_rest():
    texts = [f"Water tomatoes {n} times a week, at the root, early in the morning. " * 4 for n in range(40)]
    context = Retriever.from_texts(texts).retrieve(
        "How often should I water tomatoes?", deadline=0.05, candidates=40, redundancy=1.0, max_tokens=9_999, fill=False
    )
    late = [c for c in context.trace.candidates if c.reason == DEADLINE]
    assert len(context.trace.candidates) == len(texts)
    assert len(context.passages) >= 1
    assert len(late) >= len(texts) // 2
    assert context.trace.phases[1].settings["prior"]


def test_candidate_without_a_score_keeps_the_reason_for_that():
    """Here the context is filled, and what is unrelated to the question is left out of it."""
    texts = [f"Tomatoes of kind {n} are grown in field {n}." for n in range(6)]
    texts += [f"The treaty of year {n} was signed by parliament {n}." for n in range(14)]
    retriever = Retriever.from_texts(texts, embedder="minilm")
    traces = [
        retriever.retrieve("How do tomatoes taste?", **options).trace
        for options in ({"deadline": 1e-6, "exact": True}, {})
    ]
    for trace in traces:
        unscored = {c.reason for c in trace.candidates if "verifier" not in c.scores}
        assert unscored <= {"deadline", "unlikely", "fill"}
    assert DEADLINE in {c.reason for c in traces[0].candidates}


def test_question_asked_again_reads_four_more_whatever_the_time():
    """The time of cached scores tells nothing about that of others."""
    retriever = Retriever.from_texts([f"Room {n} seats {n + 3} people." for n in range(20)], embedder="static")
    scored = []
    for _ in range(3):
        context = retriever.retrieve("How many people fit into room 7?", deadline=1e-6, exact=True)
        scored.append(sum("verifier" in c.scores for c in context.trace.candidates))
    assert scored == [FIRST_BATCH, 2 * FIRST_BATCH, 3 * FIRST_BATCH]
