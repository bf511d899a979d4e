"""Test further hops, which search with verified passages."""

from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.calibration.probability_maps import PlattCalibration
from meve.errors import QueryError
from meve.pipeline._deadline import BATCH
from meve.pipeline.phases.cascade import LEAST_SCORED
from meve.pipeline.phases.follow import extend_query, follow
from meve.testing.fakes import OverlapVerifier
from meve.types import Candidate, Query
from tests.fake_components import make_components

QUESTION = Query(text="where was the author of emma born")


def candidate(passage_id, text, score=None, verified=False):
    scores = {} if score is None else {"verifier": score}
    return Candidate(
        passage=Passage(id=passage_id, text=text), origin="dense", score=score, scores=scores, verified=verified
    )


class WordSource:
    """A source that returns passages sharing a word with the query and records queries."""

    name = "words"

    def __init__(self, *candidates):
        self.candidates, self.queries = candidates, []

    def search(self, query, k):
        self.queries.append(query.text)
        return [c for c in self.candidates if set(c.passage.text.split()) & set(query.text.split())][:k]


class OverlapScorer:
    """A scorer that returns the share of a passage's words found in the query."""

    name = "verifier"

    def __init__(self):
        self.queries = []

    def score(self, query, candidates):
        self.queries += [(query.text.split("\n")[-1], c.id) for c in candidates]
        queries = set(query.text.split())
        return np.array(
            [len(set(c.passage.text.split()) & queries) / len(set(c.passage.text.split())) for c in candidates]
        )


EMMA = candidate("emma", "emma was written by austen", score=0.8, verified=True)
AUSTEN = candidate("austen", "austen austen born steventon")
WALLS = candidate("walls", "walls of austen brick")
LOW = candidate("low", "austen emma", score=0.2)


def run(sources, accepted, judged, evidence, scorer=None, threshold=0.5, words=60, prior=None):
    return follow(
        QUESTION, accepted, {c.id: c for c in judged}, evidence,
        sources=sources, scorer=scorer or OverlapScorer(), embed=lambda q: q, k=10, threshold=threshold, words=words,
        prior=prior,
    )  # fmt: skip


class WallsAreUnlikely:
    name, least = "walls", 0.5

    def chances(self, query, candidates):
        return np.array([0.1 if c.id.startswith("walls") else 0.9 for c in candidates])


def test_follow_verifies_a_passage_by_question_and_evidence():
    source = WordSource(EMMA, AUSTEN, WALLS)
    result = run([source], [EMMA], [EMMA], [EMMA])
    assert source.queries == ["where was the author of emma born\nemma was written by austen"]
    assert [c.id for c in result.selection.kept] == ["emma", "austen"]
    fresh = result.selection.kept[1]
    assert (fresh.origin, fresh.verified) == ("follow", True)
    assert fresh.scores == {"follow": fresh.score}
    assert [(d.candidate.id, d.reason) for d in result.selection.dropped] == [("walls", "below_threshold")]


def test_rejected_candidate_found_again_is_rescored_and_keeps_both_scores():
    result = run([WordSource(LOW)], [EMMA], [EMMA, LOW], [EMMA])
    (kept,) = [c for c in result.selection.kept if c.id == "low"]
    assert kept.scores == {"verifier": 0.2, "follow": pytest.approx(0.8)}
    assert (kept.score, kept.origin) == (pytest.approx(0.8), "dense")


def test_candidate_not_found_again_keeps_its_score():
    scorer = OverlapScorer()
    result = run([WordSource()], [EMMA], [EMMA, LOW], [EMMA], scorer)
    assert not scorer.queries
    assert result.judged["low"] is LOW
    assert result.selection.dropped == []


def test_score_with_evidence_is_multiplied_by_the_evidence_score():
    doubtful = candidate("doubtful", "emma was written by austen", score=0.55, verified=True)
    sure = candidate("sure", "zebra", score=0.9, verified=True)
    result = run([WordSource(LOW)], [sure, doubtful], [sure, doubtful, LOW], [doubtful])
    assert [(c.id, c.score) for c in result.selection.kept] == [
        ("sure", 0.9), ("doubtful", 0.55), ("low", pytest.approx(0.55))
    ]  # fmt: skip


def test_evidence_never_lowers_a_score():
    high = candidate("high", "zebra zoo emma", score=0.5)
    result = run([WordSource(high)], [EMMA], [EMMA, high], [EMMA])
    assert result.judged["high"].score == 0.5
    assert result.judged["high"].scores == {"verifier": 0.5, "follow": pytest.approx(0.8 / 3)}


def test_further_hop_never_lowers_a_score():
    result = candidate("found", "zebra zoo yard emma", score=0.45)
    result = Candidate(passage=result.passage, origin="follow", score=0.45, scores={"follow": 0.45})
    again = run([WordSource(result)], [EMMA], [EMMA, result], [EMMA])
    assert (again.judged["found"].score, again.judged["found"].scores["follow"]) == (0.45, 0.45)


def test_candidates_that_the_prior_excludes_are_not_scored_beyond_the_first_four():
    walls = [replace(WALLS, passage=Passage(id=f"walls{n}", text=f"austen brick {n}")) for n in range(6)]
    judged = replace(walls[5], score=0.3, scores={"verifier": 0.3})
    scorer = OverlapScorer()
    result = run([WordSource(*walls, AUSTEN)], [EMMA], [EMMA, judged], [EMMA], scorer, prior=WallsAreUnlikely())
    assert [i for _, i in scorer.queries] == ["austen", "walls0", "walls1", "walls2"]
    assert [d.candidate.id for d in result.selection.dropped if d.reason == "unlikely"] == ["walls3", "walls4"]
    assert result.judged["walls5"] == judged


def test_each_evidence_passage_counts_by_itself_and_the_best_score_wins():
    other = candidate("other", "brick", score=0.7, verified=True)
    scorer = OverlapScorer()
    result = run([WordSource(AUSTEN)], [EMMA, other], [EMMA, other], [EMMA, other], scorer)
    assert {piece for piece, _ in scorer.queries} == {"emma was written by austen", "brick"}
    (kept,) = [c for c in result.selection.kept if c.id == "austen"]
    assert kept.score == pytest.approx(0.8 * 2 / 3)


def test_accepted_candidate_is_not_scored_again():
    scorer = OverlapScorer()
    run([WordSource(EMMA, AUSTEN)], [EMMA], [EMMA], [EMMA], scorer)
    assert {i for _, i in scorer.queries} == {"austen"}


def test_unscored_duplicate_stays_unscored_in_later_hops(retriever):
    retriever.add([Passage(id=f"copy{n}", text=TEXTS[0]) for n in range(BATCH)])
    read = []

    class Reading(BridgeVerifier):
        def raw_scores(self, query, passages):
            read.extend((query, passage) for passage in passages)
            return super().raw_scores(query, passages)

    retriever.engine = replace(retriever.engine, verifier=Reading())
    context = retriever.retrieve("emma book home", fallback_k=0, hops=2, exact=False)
    assert [p.passage.id for p in context.passages][1:] == ["austen"]
    copied = [c for c in context.trace.candidates if c.reason.startswith("duplicate_of:") and c.phase == "verify"]
    assert copied
    assert {c.origin for c in copied} == {"dense"}
    assert TEXTS[0] not in [passage for query, passage in read if "\n" in query]


def test_only_the_first_words_of_evidence_extend_the_query():
    assert extend_query("q", ["a b c d", "e f"], 2) == "q\na b\ne f"


class BridgeVerifier(OverlapVerifier):
    """A verifier that accepts passages sharing two words with question and evidence."""

    name = "bridge"

    def __init__(self):
        super().__init__(PlattCalibration())

    def raw_scores(self, query, passages):
        queries = set(query.lower().replace("\n", " ").split())
        return np.array(
            [3.0 if len(set(p.lower().split()) & queries) >= 2 else -3.0 for p in passages], dtype=np.float32
        )


TEXTS = ["emma book by austen lady", "austen lady lived at steventon", "zinc melts", "yellow yak"]


@pytest.fixture
def retriever():
    return Retriever.from_texts(
        TEXTS, ids=["emma", "austen", "zinc", "yak"], **make_components(verifier=BridgeVerifier())
    )


def test_two_hops_complete_the_evidence_and_trace_it(retriever):
    one = retriever.retrieve("emma book home", fallback_k=0)
    assert [p.passage.id for p in one.passages] == ["emma"]
    assert [p.name for p in one.trace.phases] == ["retrieve", "verify", "fallback", "prioritize", "budget"]
    two = retriever.retrieve("emma book home", fallback_k=0, hops=2)
    assert [p.passage.id for p in two.passages] == ["emma", "austen"]
    follow_phase = next(p for p in two.trace.phases if p.name == "follow")
    assert follow_phase.settings == {"hop": 2, "evidence": ["emma"], "words": 60, "follow_k": 10}
    assert (follow_phase.received, follow_phase.returned) == (1, 2)
    fates = {c.id: c for c in two.trace.candidates}
    assert fates["austen"].scores["follow"] == pytest.approx(two.passages[0].score ** 2)
    assert (fates["zinc"].phase, fates["zinc"].reason) == ("follow", "below_threshold")


def test_prior_decides_what_further_hops_score_unless_exact(retriever):
    class OnlyFirstHop:
        name, least = "first", 0.5

        def chances(self, query, candidates):
            return np.full(len(candidates), 0.0 if "\n" in query.text else 1.0)

    retriever.add([Passage(id=f"more{n}", text=f"austen lady number {n}") for n in range(9)])
    retriever.engine = replace(retriever.engine, prior=OnlyFirstHop())
    for exact in (None, True):
        trace = retriever.retrieve("emma book home", fallback_k=0, hops=2, exact=exact, redundancy=1.0).trace
        followed = [c for c in trace.candidates if "follow" in c.scores]
        assert (len(followed) == LEAST_SCORED) == (exact is None)


def test_further_hops_use_new_evidence_and_stop_without_it(retriever):
    context = retriever.retrieve("emma book home", fallback_k=0, hops=9)
    followed = [p for p in context.trace.phases if p.name == "follow"]
    assert [p.settings.get("evidence") for p in followed if not p.skipped] == [["emma"], ["austen"]]
    assert followed[-1].skipped == "no fresh evidence"


def test_hops_stop_when_nothing_is_verified(retriever):
    context = retriever.retrieve("nothing whatever", fallback_k=0, hops=2, fill=False)
    assert not context.passages
    assert next(p for p in context.trace.phases if p.name == "follow").skipped == "no fresh evidence"


def test_modes_without_verification_make_no_further_hop(retriever):
    context = retriever.retrieve("emma book home", mode="standard_rag", hops=2)
    assert "follow" not in [p.name for p in context.trace.phases]


def test_evidence_longer_than_the_window_is_traced_and_verified_candidates_stay(retriever):
    class Short(BridgeVerifier):
        def raw_scores(self, query, passages):
            if len(query.split()) > 4:
                raise QueryError("the query has too many words")
            return super().raw_scores(query, passages)

    retriever.engine = replace(retriever.engine, verifier=Short())
    context = retriever.retrieve("emma book home", fallback_k=0, hops=2)
    assert [p.passage.id for p in context.passages] == ["emma"]
    assert "too many words" in next(p for p in context.trace.phases if p.name == "follow").skipped


@pytest.mark.parametrize("hops", [1, 2])
def test_fallback_reads_with_the_question_what_a_hop_read_with_evidence_only(hops):
    """Evidence of another topic lowers the score of a passage that the question alone verifies."""
    texts = {
        "emma": "author born emma novel written by jane austen",
        "jane": "jane austen born author by written novel emma",
        "late": "author weather",
    }
    retriever = Retriever.from_texts(list(texts.values()), ids=list(texts), **make_components())
    context = retriever.retrieve("author born emma", hops=hops, sources="dense", candidates=1, threshold=0.3)
    late = next(c for c in context.trace.candidates if c.id == "late")
    assert (late.verified, late.fate) == (True, "kept")
    assert late.scores["verifier"] == pytest.approx(1 / 3)
    assert ("follow" in late.scores) == (hops == 2)
    assert next(p.score for p in context.passages if p.passage.id == "late") == pytest.approx(1 / 3)
