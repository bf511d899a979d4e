"""Each phase, on candidates that one can check by eye."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meve.errors import ModelError
from meve.pipeline.phases import budget, fallback, prioritize, reconsider, retrieve, verify
from meve.testing.fakes import CountedTokens, WordCounter
from meve.types import Candidate, Passage, Query

QUERY = Query(text="q")


def candidate(passage_id, text="x", score=None, verified=False, **more):
    return Candidate(passage=Passage(id=passage_id, text=text), origin="dense", score=score, verified=verified, **more)


class Listed:
    """A source that brings what it was given."""

    def __init__(self, name, *candidates):
        self.name, self.candidates = name, candidates

    def search(self, query, k):
        return self.candidates[:k]


class Table:
    """A scorer that looks scores up by id, and notes what it was asked."""

    name = "verifier"

    def __init__(self, **scores):
        self.scores, self.asked = scores, []

    def score(self, query, candidates):
        self.asked += [c.id for c in candidates]
        return np.array([self.scores[c.id] for c in candidates], dtype=np.float32)


def ids(candidates):
    return [c.id for c in candidates]


def reasons(selection):
    return {d.candidate.id: d.reason for d in selection.dropped}


class TestRetrieve:
    def test_a_passage_that_two_sources_bring_comes_once_with_both_scores(self):
        """Sources are united by id."""
        one = Listed("dense", candidate("a", scores={"dense": 0.9}), candidate("b", scores={"dense": 0.8}))
        two = Listed("lexical", candidate("b", scores={"lexical": 3.0}), candidate("c", scores={"lexical": 2.0}))
        found = retrieve(QUERY, [one, two], 5)
        assert ids(found) == ["a", "b", "c"]
        assert found[1].scores == {"dense": 0.8, "lexical": 3.0}

    def test_each_source_brings_at_most_k(self):
        """k is a bound for each source."""
        assert ids(retrieve(QUERY, [Listed("dense", *map(candidate, "abc"))], 2)) == ["a", "b"]

    def test_what_one_source_lacks_the_other_gives(self):
        """A vector and a token count come from whichever source has them."""
        vector = np.ones(2, dtype=np.float32)
        two = Listed("two", candidate("a", vector=vector, tokens=3))
        found = retrieve(QUERY, [Listed("one", candidate("a")), two], 5)
        assert found[0].vector is vector
        assert found[0].tokens == 3


class TestVerify:
    def test_a_score_at_the_threshold_is_verified(self):
        """s_i ≥ τ, not >."""
        selection = verify(QUERY, [candidate("a"), candidate("b")], Table(a=0.5, b=0.49), 0.5)
        assert ids(selection.kept) == ["a"]
        assert selection.kept[0].verified
        assert reasons(selection) == {"b": "below_threshold"}
        assert not selection.dropped[0].candidate.verified

    def test_the_best_comes_first_and_equals_by_id(self):
        """Order is by falling score, ties by id."""
        selection = verify(QUERY, [candidate(i) for i in "dcba"], Table(a=0.6, b=0.9, c=0.6, d=0.6), 0.5)
        assert ids(selection.kept) == ["b", "a", "c", "d"]

    def test_the_verdict_is_noted_beside_earlier_scores(self):
        """No score is lost."""
        selection = verify(QUERY, [candidate("a", scores={"dense": 0.3})], Table(a=0.75), 0.5)
        assert selection.kept[0].scores == {"dense": 0.3, "verifier": 0.75}

    def test_the_candidates_that_came_in_stay_as_they_were(self):
        """Phases change nothing in place."""
        before = candidate("a")
        verify(QUERY, [before], Table(a=0.9), 0.5)
        assert (before.score, before.verified, before.scores) == (None, False, {})

    @pytest.mark.parametrize("scores", [[float("nan")], [0.1, 0.2], [float("inf")]])
    def test_scores_that_are_not_one_finite_number_each_are_refused(self, scores):
        """A broken model is an error, not a low score."""

        class Broken:
            name = "broken"

            def score(self, query, candidates):
                return np.array(scores, dtype=np.float32)

        with pytest.raises(ModelError, match="broken"):
            verify(QUERY, [candidate("a")], Broken(), 0.5)

    def test_nothing_in_nothing_out(self):
        """No candidates, no question to the model."""
        scorer = Table()
        assert verify(QUERY, [], scorer, 0.5).kept == []
        assert scorer.asked == []


def fall_back(accepted, judged, hits, scorer, k=5, floor=0.1, threshold=0.5):
    return fallback(
        QUERY,
        accepted,
        {c.id: c for c in judged},
        source=Listed("lexical", *hits),
        scorer=scorer,
        k=k,
        floor=floor,
        threshold=threshold,
    )


class TestFallback:
    def test_one_that_reaches_the_threshold_is_verified_and_takes_its_place_by_score(self):
        """The fallback's finds are on the same scale as phase 2's."""
        known = candidate("a", score=0.6, verified=True)
        selection = fall_back([known], [known], [candidate("b")], Table(b=0.9))
        assert ids(selection.kept) == ["b", "a"]
        assert selection.kept[0].verified
        assert selection.kept[0].origin == "fallback"
        assert selection.kept[1].origin == "dense"

    def test_one_below_the_threshold_ranks_after_the_verified(self):
        """Not verified is never above verified, and what is below the floor stays out."""
        known = candidate("a", score=0.5, verified=True)
        selection = fall_back([known], [known], [candidate("b"), candidate("c")], Table(b=0.4999, c=0.05))
        assert ids(selection.kept) == ["a", "b"]
        assert not selection.kept[1].verified
        assert reasons(selection) == {"c": "below_floor"}

    def test_a_floor_of_nothing_lets_all_in(self):
        """Floor 0 is the paper's behaviour."""
        assert ids(fall_back([], [], [candidate("b")], Table(b=0.0), floor=0.0).kept) == ["b"]

    def test_nothing_is_judged_twice(self):
        """One that phase 2 turned down comes back with the score that it got then."""
        rejected = candidate("b", score=0.3).with_score("verifier", 0.3)
        scorer = Table(c=0.2)
        hits = [candidate("b", scores={"lexical": 7.0}), candidate("c")]
        selection = fall_back([], [rejected], hits, scorer)
        assert scorer.asked == ["c"]
        assert ids(selection.kept) == ["b", "c"]
        assert selection.kept[0].scores == {"lexical": 7.0, "verifier": 0.3}

    def test_it_adds_at_most_k_that_were_not_accepted_already(self):
        """Accepted ones among the hits don't use up the k."""
        known = candidate("a", score=0.6, verified=True)
        selection = fall_back([known], [known], [candidate(i) for i in "abcd"], Table(b=0.3, c=0.2, d=0.4), k=2)
        assert ids(selection.kept) == ["a", "b", "c"]

    def test_where_nothing_is_verified_nothing_becomes_so(self):
        """Modes without verification have no threshold to reach."""
        selection = fall_back([], [], [candidate("b")], Table(b=1.0), threshold=None)
        assert not selection.kept[0].verified


class TestReconsider:
    def back(self, accepted, turned_down, k=5, floor=0.1):
        return reconsider(accepted, {c.id: c for c in [*accepted, *turned_down]}, k=k, floor=floor)

    def test_the_best_that_were_turned_down_come_back_after_the_verified(self):
        """At most k, by their score, and none below the floor."""
        known = candidate("a", score=0.6, verified=True)
        others = [candidate(i, score=s) for i, s in (("b", 0.2), ("c", 0.4), ("d", 0.05), ("e", 0.3))]
        selection = self.back([known], others, k=2)
        assert ids(selection.kept) == ["a", "c", "e"]
        assert [c.origin for c in selection.kept] == ["dense", "fallback", "fallback"]
        assert not any(c.verified for c in selection.kept[1:])

    def test_none_below_the_floor(self):
        """The floor itself is reached."""
        assert ids(self.back([], [candidate("b", score=0.0999), candidate("c", score=0.1)]).kept) == ["c"]

    def test_what_is_in_already_does_not_come_twice(self):
        """Accepted ones don't use up the k either."""
        known = candidate("a", score=0.9, verified=True)
        assert ids(self.back([known], [candidate("b", score=0.3)], k=1).kept) == ["a", "b"]


def vectors(*rows):
    return np.array(rows, dtype=np.float32)


class TestPrioritize:
    def test_a_near_copy_of_a_better_one_is_dropped_and_names_it(self):
        """Cosine above θ with any kept one is redundant."""
        both = [candidate("a", score=0.6, verified=True), candidate("b", score=0.9, verified=True)]
        selection = prioritize(both, vectors([1, 0], [1, 0.1]), 0.85)
        assert ids(selection.kept) == ["b"]
        assert reasons(selection) == {"a": "redundant_with:b"}

    def test_a_cosine_at_the_bound_is_kept(self):
        """Above θ, not at it."""
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert ids(prioritize(both, vectors([1, 0], [3, 4]), 0.6).kept) == ["a", "b"]

    def test_only_kept_ones_make_others_redundant(self):
        """b is dropped for a; c, which only b resembles, stays."""
        three = [candidate(i, score=s) for i, s in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
        angles = np.radians([0, 25, 50])
        selection = prioritize(three, np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32), 0.85)
        assert ids(selection.kept) == ["a", "c"]

    def test_one_drops_nothing_not_even_an_exact_copy(self):
        """θ = 1 switches it off."""
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert len(prioritize(both, vectors([0.6, 0.7], [0.6, 0.7]), 1.0).kept) == 2

    def test_what_is_close_and_does_not_say_the_same_is_not_redundant(self):
        both = [candidate("a", 0.9), candidate("b", 0.8)]
        asked = []
        kept = prioritize(both, vectors([1, 0], [1, 0]), 0.85, lambda *pair: asked.append(pair) or "").kept
        assert ids(kept) == ["a", "b"]
        assert asked == [(both[1].passage, both[0].passage)]
        assert ids(prioritize(both, vectors([1, 0], [1, 0]), 0.85, lambda *_: "same").kept) == ["a"]

    def test_of_two_in_conflict_the_one_that_yields_goes_whichever_ranks_higher(self):
        three = [candidate("a", 0.9), candidate("b", 0.8), candidate("c", 0.7)]
        near = vectors([1, 0], [1, 0], [0, 1])
        assert reasons(prioritize(three, near, 0.85, lambda *_: "yields")) == {"b": "contradicted_by:a"}
        assert reasons(prioritize(three, near, 0.85, lambda *_: "prevails")) == {"a": "contradicted_by:b"}
        all_near = vectors([1, 0], [1, 0], [1, 0])

        def relate(one, other):
            return {"ba": "", "ca": "prevails", "cb": "same"}[one.id + other.id]

        chosen = prioritize(three, all_near, 0.85, relate)
        assert reasons(chosen) == {"a": "contradicted_by:c", "c": "redundant_with:b"}, "b says what c says"

    def test_what_yields_drives_nothing_out(self):
        """c prevails over a, and yields to b: it goes, and a stays."""
        three = [candidate("a", 0.9), candidate("b", 0.8), candidate("c", 0.7)]
        found = {"ba": "", "ca": "prevails", "cb": "yields"}
        chosen = prioritize(three, vectors([1, 0], [1, 0], [1, 0]), 0.85, lambda one, other: found[one.id + other.id])
        assert reasons(chosen) == {"c": "contradicted_by:b"}

    def test_length_does_not_matter(self):
        """Vectors of a dot-product model are compared by angle."""
        both = [candidate("a", score=0.9), candidate("b", score=0.6)]
        assert ids(prioritize(both, vectors([9, 0], [0.1, 0]), 0.85).kept) == ["a"]

    def test_verified_before_not_verified_whatever_the_score(self):
        """Order: verified, score, id."""
        three = [candidate("a", score=0.9), candidate("c", score=0.2, verified=True), candidate("b", score=0.9)]
        assert ids(prioritize(three, np.eye(3, dtype=np.float32), 0.85).kept) == ["c", "a", "b"]


def pack(candidates, max_tokens, counter=None, **more):
    return budget(candidates, counter or WordCounter(), max_tokens=max_tokens, **more)


class TestBudget:
    def test_what_does_not_fit_is_skipped_and_the_next_tried(self):
        """A long one does not end the packing."""
        composed = pack([candidate("a", "one two"), candidate("b", "1 2 3 4"), candidate("c", "three")], 3)
        assert composed.text == "one two\n\nthree"
        assert composed.tokens == 3
        assert reasons(composed.selection) == {"b": "over_budget"}

    def test_the_text_is_counted_with_its_citations(self):
        """[1] and [2] are words too."""
        two = [candidate("a", "one two"), candidate("b", "three")]
        assert pack(two, 5, citations=True).text == "[1] one two\n\n[2] three"
        assert pack(two, 4, citations=True).text == "[1] one two"
        assert pack(two, 4, citations=True).tokens == 3

    def test_separators_count(self):
        """A separator that has tokens uses up the budget."""
        two = [candidate("a", "one"), candidate("b", "two")]
        assert pack(two, 2, separator=" and ").text == "one"
        assert pack(two, 3, separator=" and ").tokens == 3

    def test_titles_count(self):
        """A title stands in the text, and is paid for."""
        titled = replace(candidate("a"), passage=Passage(id="a", title="The Title", text="text"))
        assert pack([titled], 2).text == ""
        assert pack([titled], 3).text == "The Title\ntext"

    def test_limit_caps_the_number(self):
        """No more than that many, and the trace says so."""
        composed = pack([candidate(i) for i in "abc"], 10, limit=2)
        assert ids(composed.selection.kept) == ["a", "b"]
        assert reasons(composed.selection) == {"c": "over_limit"}

    def test_stored_counts_are_used(self):
        """Where every candidate has its count, only the final text is counted, and the separator."""
        counter = CountedTokens(WordCounter())
        pack([candidate("a", "one two", tokens=2), candidate("b", "three", tokens=1)], 10, counter)
        assert counter.calls.passages == ["\n\n", "one two\n\nthree"]

    @pytest.mark.parametrize("wrong", [1, 40])
    def test_the_budget_holds_even_if_stored_counts_are_wrong(self, wrong):
        """What decides is the count of the final text."""
        many = [candidate(i, "one two three", tokens=wrong) for i in "abcdef"]
        composed = pack(many, 10)
        assert composed.tokens == len(composed.text.split()) <= 10

    def test_where_counts_add_up_only_the_end_is_counted(self):
        """However close to the limit: no text is counted to see whether it fits."""
        counter = CountedTokens(WordCounter())
        counter.adds_up = True
        many = [candidate(i, "one two three", tokens=3) for i in "abcdef"]
        composed = pack(many, 14, counter, citations=True, separator="\n")
        assert ids(composed.selection.kept) == ["a", "b", "c"]
        assert composed.tokens == 12
        assert [text for text in counter.calls.passages if "one" in text] == [composed.text]

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 40), st.booleans(), st.sampled_from("\n \t|"))
    def test_adding_up_packs_as_counting_does(self, lengths, most, citations, separator):
        """With any separator: one that isn't white space is counted with what stands beside it."""
        many = [candidate(str(n), "word " * length) for n, length in enumerate(lengths)]
        summing = WordCounter()
        summing.adds_up = True
        counted, added = (
            pack(many, most, counter, citations=citations, separator=separator) for counter in (WordCounter(), summing)
        )
        assert (added.text, added.tokens) == (counted.text, counted.tokens)
        assert reasons(added.selection) == reasons(counted.selection)

    def test_stored_counts_that_are_too_low_are_seen_where_counts_add_up(self):
        """What decides is the count of the final text."""
        summing = WordCounter()
        summing.adds_up = True
        composed = pack([candidate(i, "one two three", tokens=1) for i in "abcdef"], 10, summing)
        assert composed.tokens == len(composed.text.split()) == 9

    def test_seams_that_cost_tokens_are_paid(self):
        """A tokenizer for which a joined text has more tokens than its parts never overruns."""

        class Seamy:
            name = "seamy"

            def count(self, text):
                return len(text.split()) + 2 * text.count("\n\n") if text.strip() else 0

            def count_many(self, texts):
                return [self.count(t) for t in texts]

        composed = pack([candidate(i, "w w") for i in "abcd"], 8, Seamy())
        assert composed.text == "w w\n\nw w"
        assert composed.tokens == 6

    def test_seams_that_save_tokens_are_used(self):
        """A joined text that is shorter than the sum is given the room that is there."""

        class Saving:
            name = "saving"

            def count(self, text):
                return -(-len(text) // 4)

            def count_many(self, texts):
                return [self.count(t) for t in texts]

        # two tokens each alone, but "abcde|abcde" is 11 characters: three tokens
        assert pack([candidate("a", "abcde"), candidate("b", "abcde")], 3, Saving(), separator="|").tokens == 3

    def test_nothing_fits(self):
        """An empty text has no tokens."""
        composed = pack([candidate("a", "one two")], 1)
        assert (composed.text, composed.tokens) == ("", 0)
