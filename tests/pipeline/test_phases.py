"""Test each phase on small candidates."""

from dataclasses import FrozenInstanceError, fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.components.tokenizers.function import FunctionTokens
from meve.errors import ModelError
from meve.pipeline.phases.budget import budget
from meve.pipeline.phases.fallback import fallback, reconsider
from meve.pipeline.phases.prioritize import prioritize
from meve.pipeline.phases.retrieve import retrieve
from meve.pipeline.phases.verify import verify
from meve.testing.fakes import CountingTokens, WordCounter
from meve.types import Candidate, Passage, Query

QUERY = Query(text="q")


def candidate(passage_id, text="x", score=None, verified=False, **more):
    return Candidate(passage=Passage(id=passage_id, text=text), origin="dense", score=score, verified=verified, **more)


def test_candidate_with_a_score_is_a_frozen_copy_with_all_fields():
    first = candidate("a", tokens=3, place=2, scores={"dense": 0.4}, read_with=("b",), keyword_share=0.5)
    scored = first.with_score("verifier", 0.7, verified=True)
    expected = replace(first, scores={"dense": 0.4, "verifier": 0.7}, score=0.7, verified=True)
    assert [getattr(scored, f.name) for f in fields(Candidate)] == [
        getattr(expected, f.name) for f in fields(Candidate)
    ]
    assert (first.scores, first.score, first.verified) == ({"dense": 0.4}, None, False)
    with pytest.raises(FrozenInstanceError):
        scored.score = 1.0


class ListSource:
    """A source that returns fixed candidates."""

    def __init__(self, name, *candidates):
        self.name, self.candidates = name, candidates

    def search(self, query, k):
        return self.candidates[:k]


class TableScorer:
    """A scorer with fixed scores by id that records its calls."""

    name = "verifier"

    def __init__(self, **scores):
        self.scores, self.calls = scores, []

    def score(self, query, candidates):
        self.calls += [c.id for c in candidates]
        return np.array([self.scores[c.id] for c in candidates], dtype=np.float32)


def ids(candidates):
    return [c.id for c in candidates]


def reasons(selection):
    return {d.candidate.id: d.reason for d in selection.dropped}


class TestRetrieve:
    def test_passage_from_two_sources_is_merged_with_both_scores(self):
        one = ListSource("dense", candidate("a", scores={"dense": 0.9}), candidate("b", scores={"dense": 0.8}))
        two = ListSource("lexical", candidate("b", scores={"lexical": 3.0}), candidate("c", scores={"lexical": 2.0}))
        selection = retrieve(QUERY, [one, two], 5)
        assert ids(selection) == ["a", "b", "c"]
        assert selection[1].scores == {"dense": 0.8, "lexical": 3.0}
        assert {c.keyword_share for c in selection} == {None}, "the source doesn't score what others found"

    def test_keyword_source_scores_what_others_found(self):
        class Keywords(ListSource):
            asked = ()

            def score_ids(self, query, ids):
                self.asked = ids
                return {"a": 1.5, "x": 0.0}

        found = {
            name: candidate(name, scores={"words": score})
            for name, score in zip("bcde", (3.0, 2.0, 1.0, 0.75), strict=True)
        }
        one = ListSource("dense", *(candidate(name, scores={"dense": 0.9}) for name in "axy"))
        two = Keywords("words", *found.values())
        shares = {c.id: c.keyword_share for c in retrieve(QUERY, [one, two], 5)}
        assert shares == {"a": 0.5, "x": 0.0, "y": None, "b": 1.0, "c": 2 / 3, "d": 1 / 3, "e": 0.25}
        assert two.asked == ["a", "x", "y"]

    def test_keyword_shares_of_a_few_hits_are_unknown(self):
        class Keywords(ListSource):
            def score_ids(self, query, ids):
                return dict.fromkeys(ids, 0.0)

        few = Keywords("words", *(candidate(name, scores={"words": 2.0}) for name in "ab"))
        assert [c.keyword_share for c in retrieve(QUERY, [few], 5)] == [None] * 2
        enough = Keywords("words", *(candidate(name, scores={"words": 2.0}) for name in "abc"))
        assert [c.keyword_share for c in retrieve(QUERY, [enough], 5)] == [1.0] * 3

    def test_each_source_returns_at_most_k(self):
        assert ids(retrieve(QUERY, [ListSource("dense", *map(candidate, "abc"))], 2)) == ["a", "b"]

    def test_merged_candidate_takes_vector_and_tokens_from_either_source(self):
        vector = np.ones(2, dtype=np.float32)
        two = ListSource("two", candidate("a", vector=vector, tokens=3))
        selection = retrieve(QUERY, [ListSource("one", candidate("a")), two], 5)
        assert selection[0].vector is vector
        assert selection[0].tokens == 3


class TestVerify:
    def test_score_equal_to_the_threshold_is_verified(self):
        selection = verify(QUERY, [candidate("a"), candidate("b")], TableScorer(a=0.5, b=0.49), 0.5)
        assert ids(selection.kept) == ["a"]
        assert selection.kept[0].verified
        assert reasons(selection) == {"b": "below_threshold"}
        assert not selection.dropped[0].candidate.verified

    def test_verified_candidates_are_ordered_by_score_then_id(self):
        selection = verify(QUERY, [candidate(i) for i in "dcba"], TableScorer(a=0.6, b=0.9, c=0.6, d=0.6), 0.5)
        assert ids(selection.kept) == ["b", "a", "c", "d"]

    def test_verifier_score_is_added_to_earlier_scores(self):
        selection = verify(QUERY, [candidate("a", scores={"dense": 0.3})], TableScorer(a=0.75), 0.5)
        assert selection.kept[0].scores == {"dense": 0.3, "verifier": 0.75}

    def test_verify_does_not_change_its_input(self):
        before = candidate("a")
        verify(QUERY, [before], TableScorer(a=0.9), 0.5)
        assert (before.score, before.verified, before.scores) == (None, False, {})

    @pytest.mark.parametrize("scores", [[float("nan")], [0.1, 0.2], [float("inf")]])
    def test_scores_without_one_finite_number_each_raise_error(self, scores):
        broken = SimpleNamespace(name="broken", score=lambda *_: np.array(scores, dtype=np.float32))
        with pytest.raises(ModelError, match="broken"):
            verify(QUERY, [candidate("a")], broken, 0.5)

    def test_no_candidates_ask_no_model(self):
        scorer = TableScorer()
        assert verify(QUERY, [], scorer, 0.5).kept == []
        assert scorer.calls == []


def fall_back(accepted, judged, hits, scorer, k=5, floor=0.1, threshold=0.5):
    return fallback(
        QUERY,
        accepted,
        {c.id: c for c in judged},
        source=ListSource("lexical", *hits),
        scorer=scorer,
        k=k,
        floor=floor,
        threshold=threshold,
    )


class TestFallback:
    def test_fallback_candidate_at_the_threshold_is_verified_and_ranked_by_score(self):
        known = candidate("a", score=0.6, verified=True)
        selection = fall_back([known], [known], [candidate("b")], TableScorer(b=0.9))
        assert ids(selection.kept) == ["b", "a"]
        assert selection.kept[0].verified
        assert selection.kept[0].origin == "fallback"
        assert selection.kept[1].origin == "dense"

    def test_fallback_candidate_below_the_threshold_ranks_after_verified_ones(self):
        known = candidate("a", score=0.5, verified=True)
        selection = fall_back([known], [known], [candidate("b"), candidate("c")], TableScorer(b=0.4999, c=0.05))
        assert ids(selection.kept) == ["a", "b"]
        assert not selection.kept[1].verified
        assert reasons(selection) == {"c": "below_floor"}

    def test_floor_of_zero_admits_all(self):
        assert ids(fall_back([], [], [candidate("b")], TableScorer(b=0.0), floor=0.0).kept) == ["b"]

    def test_rejected_candidate_returns_with_its_old_score(self):
        rejected = candidate("b", score=0.3).with_score("verifier", 0.3)
        scorer = TableScorer(c=0.2)
        hits = [candidate("b", scores={"lexical": 7.0}), candidate("c")]
        selection = fall_back([], [rejected], hits, scorer)
        assert scorer.calls == ["c"]
        assert ids(selection.kept) == ["b", "c"]
        assert selection.kept[0].scores == {"lexical": 7.0, "verifier": 0.3}

    def test_fallback_adds_at_most_k_beyond_accepted_ones(self):
        known = candidate("a", score=0.6, verified=True)
        selection = fall_back([known], [known], [candidate(i) for i in "abcd"], TableScorer(b=0.3, c=0.2, d=0.4), k=2)
        assert ids(selection.kept) == ["a", "b", "c"]

    def test_without_a_threshold_nothing_becomes_verified(self):
        selection = fall_back([], [], [candidate("b")], TableScorer(b=1.0), threshold=None)
        assert not selection.kept[0].verified


class TestReconsider:
    def reconsider_with(self, accepted, rejected, k=5, floor=0.1):
        return reconsider(accepted, {c.id: c for c in [*accepted, *rejected]}, k=k, floor=floor)

    def test_reconsider_adds_the_best_rejected_after_verified_ones(self):
        known = candidate("a", score=0.6, verified=True)
        others = [candidate(i, score=s) for i, s in (("b", 0.2), ("c", 0.4), ("d", 0.05), ("e", 0.3))]
        selection = self.reconsider_with([known], others, k=2)
        assert ids(selection.kept) == ["a", "c", "e"]
        assert [c.origin for c in selection.kept] == ["dense", "fallback", "fallback"]
        assert not any(c.verified for c in selection.kept[1:])

    def test_reconsider_admits_scores_equal_to_the_floor_only_from_there(self):
        assert ids(self.reconsider_with([], [candidate("b", score=0.0999), candidate("c", score=0.1)]).kept) == ["c"]

    def test_reconsider_never_repeats_accepted_candidates(self):
        known = candidate("a", score=0.9, verified=True)
        assert ids(self.reconsider_with([known], [candidate("b", score=0.3)], k=1).kept) == ["a", "b"]


def vectors(*rows):
    return np.array(rows, dtype=np.float32)


class TestPrioritize:
    def test_redundant_candidate_is_dropped_with_the_id_of_the_better_one(self):
        both = [candidate("a", score=0.6, verified=True), candidate("b", score=0.9, verified=True)]
        selection = prioritize(both, vectors([1, 0], [1, 0.1]), 0.85)
        assert ids(selection.kept) == ["b"]
        assert reasons(selection) == {"a": "redundant_with:b"}

    def test_cosine_equal_to_redundancy_is_kept(self):
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert ids(prioritize(both, vectors([1, 0], [3, 4]), 0.6).kept) == ["a", "b"]

    def test_dropped_candidate_makes_no_other_redundant(self):
        three = [candidate(i, score=s) for i, s in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
        angles = np.radians([0, 25, 50])
        selection = prioritize(three, np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), 0.85)
        assert ids(selection.kept) == ["a", "c"]

    def test_redundancy_of_one_keeps_exact_duplicates(self):
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert len(prioritize(both, vectors([0.6, 0.7], [0.6, 0.7]), 1.0).kept) == 2

    def test_similar_but_unrelated_candidate_is_kept(self):
        both = [candidate("a", 0.9), candidate("b", 0.8)]
        calls = []
        kept = prioritize(both, vectors([1, 0], [1, 0]), 0.85, lambda *pair: calls.append(pair) or "").kept
        assert ids(kept) == ["a", "b"]
        assert calls == [(both[1].passage, both[0].passage)]
        assert ids(prioritize(both, vectors([1, 0], [1, 0]), 0.85, lambda *_: "same").kept) == ["a"]

    def test_yielding_candidate_is_dropped_whichever_ranks_higher(self):
        three = [candidate("a", 0.9), candidate("b", 0.8), candidate("c", 0.7)]
        near = vectors([1, 0], [1, 0], [0, 1])
        assert reasons(prioritize(three, near, 0.85, lambda *_: "yields")) == {"b": "contradicted_by:a"}
        assert reasons(prioritize(three, near, 0.85, lambda *_: "prevails")) == {"a": "contradicted_by:b"}
        all_near = vectors([1, 0], [1, 0], [1, 0])

        def relate(one, other):
            return {"ba": "", "ca": "prevails", "cb": "same"}[one.id + other.id]

        chosen = prioritize(three, all_near, 0.85, relate)
        assert reasons(chosen) == {"a": "contradicted_by:c", "c": "redundant_with:b"}, "b says what c says"

    def test_yielding_candidate_contradicts_no_other(self):
        three = [candidate("a", 0.9), candidate("b", 0.8), candidate("c", 0.7)]
        pairs = {"ba": "", "ca": "prevails", "cb": "yields"}
        chosen = prioritize(three, vectors([1, 0], [1, 0], [1, 0]), 0.85, lambda one, other: pairs[one.id + other.id])
        assert reasons(chosen) == {"c": "contradicted_by:b"}

    def test_redundancy_ignores_vector_length(self):
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert ids(prioritize(both, vectors([9, 0], [0.1, 0]), 0.85).kept) == ["a"]

    def test_verified_candidate_ranks_before_unverified_with_higher_score(self):
        three = [candidate("a", score=0.9), candidate("c", score=0.2, verified=True), candidate("b", score=0.9)]
        assert ids(prioritize(three, np.eye(3, dtype=np.float32), 0.85).kept) == ["c", "a", "b"]


def pack(candidates, max_tokens, counter=None, **more):
    return budget(candidates, counter or WordCounter(), max_tokens=max_tokens, **more)


class TestBudget:
    def test_passage_over_budget_is_skipped_and_the_next_tried(self):
        composed = pack([candidate("a", "one two"), candidate("b", "1 2 3 4"), candidate("c", "three")], 3)
        assert composed.text == "one two\n\nthree"
        assert composed.tokens == 3
        assert reasons(composed.selection) == {"b": "over_budget"}

    def test_citations_count_against_the_budget(self):
        two = [candidate("a", "one two"), candidate("b", "three")]
        assert pack(two, 5, citations=True).text == "[1] one two\n\n[2] three"
        assert pack(two, 4, citations=True).text == "[1] one two"
        assert pack(two, 4, citations=True).tokens == 3

    def test_separators_count_against_the_budget(self):
        two = [candidate("a", "one"), candidate("b", "two")]
        assert pack(two, 2, separator=" and ").text == "one"
        assert pack(two, 3, separator=" and ").tokens == 3

    def test_titles_count_against_the_budget(self):
        titled = replace(candidate("a"), passage=Passage(id="a", title="The Title", text="text"))
        assert pack([titled], 2).text == ""
        assert pack([titled], 3).text == "The Title\ntext"

    def test_reason_against_a_candidate_is_asked_only_of_what_fits(self):
        four = [candidate("a", "one two"), candidate("b", "1 2 3 4"), candidate("c", "three"), candidate("d", "four")]
        asked = []
        composed = pack(four, 3, limit=2, find_reason=lambda c: asked.append(c.id) or ("bad" if c.id == "a" else ""))
        assert asked == ["a", "c", "d"]
        assert reasons(composed.selection) == {"a": "bad", "b": "over_budget"}
        assert ids(composed.selection.kept) == ["c", "d"]

    def test_limit_caps_the_passages_and_names_the_reason(self):
        composed = pack([candidate(i) for i in "abc"], 10, limit=2)
        assert ids(composed.selection.kept) == ["a", "b"]
        assert reasons(composed.selection) == {"c": "over_limit"}

    def test_stored_counts_avoid_counting_each_passage(self):
        counter = CountingTokens(WordCounter())
        pack([candidate("a", "one two", tokens=2), candidate("b", "three", tokens=1)], 10, counter)
        assert counter.calls.passages == ["\n\n", "one two\n\nthree"]

    @pytest.mark.parametrize("wrong", [1, 40])
    def test_budget_holds_with_wrong_stored_counts(self, wrong):
        many = [candidate(i, "one two three", tokens=wrong) for i in "abcdef"]
        composed = pack(many, 10)
        assert composed.tokens == len(composed.text.split()) <= 10

    def test_additive_counter_counts_only_the_final_text(self):
        counter = CountingTokens(WordCounter())
        counter.adds_up = True
        many = [candidate(i, "one two three", tokens=3) for i in "abcdef"]
        composed = pack(many, 14, counter, citations=True, separator="\n")
        assert ids(composed.selection.kept) == ["a", "b", "c"]
        assert composed.tokens == 12
        assert [text for text in counter.calls.passages if "one" in text] == [composed.text]

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 40), st.booleans(), st.sampled_from("\n \t|"))
    def test_additive_counter_packs_like_a_counting_one(self, lengths, most, citations, separator):
        many = [candidate(str(n), "word " * length) for n, length in enumerate(lengths)]
        summing = WordCounter()
        summing.adds_up = True
        counted, added = (
            pack(many, most, counter, citations=citations, separator=separator) for counter in (WordCounter(), summing)
        )
        assert (added.text, added.tokens) == (counted.text, counted.tokens)
        assert reasons(added.selection) == reasons(counted.selection)

    def test_additive_counter_detects_too_low_stored_counts(self):
        summing = WordCounter()
        summing.adds_up = True
        composed = pack([candidate(i, "one two three", tokens=1) for i in "abcdef"], 10, summing)
        assert composed.tokens == len(composed.text.split()) == 9

    def test_budget_holds_when_joining_costs_tokens(self):
        costly = FunctionTokens(lambda text: len(text.split()) + 2 * text.count("\n\n") if text.strip() else 0)
        composed = pack([candidate(i, "w w") for i in "abcd"], 8, costly)
        assert composed.text == "w w\n\nw w"
        assert composed.tokens == 6

    def test_tokens_saved_by_joining_are_used(self):
        # two tokens each alone, but "abcde|abcde" is 11 characters: three tokens
        saving = FunctionTokens(lambda text: -(-len(text) // 4))
        assert pack([candidate("a", "abcde"), candidate("b", "abcde")], 3, saving, separator="|").tokens == 3

    def test_no_fitting_passage_gives_empty_text(self):
        composed = pack([candidate("a", "one two")], 1)
        assert (composed.text, composed.tokens) == ("", 0)
