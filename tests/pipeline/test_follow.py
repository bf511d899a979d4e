"""A further hop: what completes the evidence is found and judged with it, and nothing that was verified is lost."""

from dataclasses import replace

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.errors import ConfigurationError
from meve.pipeline.phases.cascade import BATCH
from meve.pipeline.phases.follow import follow, with_evidence
from meve.testing.fakes import WordCounter, WordEmbedder
from meve.types import Candidate, Query

QUESTION = Query(text="where was the author of emma born")


def candidate(passage_id, text, score=None, verified=False):
    scores = {} if score is None else {"verifier": score}
    return Candidate(
        passage=Passage(id=passage_id, text=text), origin="dense", score=score, scores=scores, verified=verified
    )


class Words:
    """Brings whatever shares a word with the query, and notes what it was asked."""

    name = "words"

    def __init__(self, *candidates):
        self.candidates, self.asked = candidates, []

    def search(self, query, k):
        self.asked.append(query.text)
        return [c for c in self.candidates if set(c.passage.text.split()) & set(query.text.split())][:k]


class Overlap:
    """The share of a passage's words that the query has."""

    name = "verifier"

    def __init__(self):
        self.asked = []

    def score(self, query, candidates):
        self.asked += [(query.text.split("\n")[-1], c.id) for c in candidates]
        asked = set(query.text.split())
        return np.array(
            [len(set(c.passage.text.split()) & asked) / len(set(c.passage.text.split())) for c in candidates]
        )


EMMA = candidate("emma", "emma was written by austen", score=0.8, verified=True)
AUSTEN = candidate("austen", "austen austen born steventon")
WALLS = candidate("walls", "walls of austen brick")
LOW = candidate("low", "austen emma", score=0.2)


def run(sources, accepted, judged, evidence, scorer=None, threshold=0.5, words=60):
    return follow(
        QUESTION, accepted, {c.id: c for c in judged}, evidence,
        sources=sources, scorer=scorer or Overlap(), embed=lambda q: q, k=5, threshold=threshold, words=words,
    )  # fmt: skip


def test_the_second_passage_is_found_and_verified_by_question_and_evidence_together():
    source = Words(EMMA, AUSTEN, WALLS)
    found = run([source], [EMMA], [EMMA], [EMMA])
    assert source.asked == ["where was the author of emma born\nemma was written by austen"]
    assert [c.id for c in found.selection.kept] == ["emma", "austen"]
    fresh = found.selection.kept[1]
    assert (fresh.origin, fresh.verified) == ("follow", True)
    assert fresh.scores == {"follow": fresh.score}
    assert [(d.candidate.id, d.reason) for d in found.selection.dropped] == [("walls", "below_threshold")]


def test_what_was_turned_down_and_is_found_again_gets_a_second_chance_and_keeps_both_scores():
    found = run([Words(LOW)], [EMMA], [EMMA, LOW], [EMMA])
    (kept,) = [c for c in found.selection.kept if c.id == "low"]
    assert kept.scores == {"verifier": 0.2, "follow": pytest.approx(0.8)}
    assert (kept.score, kept.origin) == (pytest.approx(0.8), "dense")


def test_what_is_not_found_again_is_not_read_again_and_keeps_its_verdict():
    scorer = Overlap()
    found = run([Words()], [EMMA], [EMMA, LOW], [EMMA], scorer)
    assert not scorer.asked
    assert found.judged["low"] is LOW
    assert found.selection.dropped == []


def test_what_hangs_on_doubtful_evidence_is_as_doubtful():
    """Certain beside the piece, it is as probable as the piece, and stands behind what is more probable by itself."""
    doubtful = candidate("doubtful", "emma was written by austen", score=0.55, verified=True)
    sure = candidate("sure", "zebra", score=0.9, verified=True)
    found = run([Words(LOW)], [sure, doubtful], [sure, doubtful, LOW], [doubtful])
    assert [(c.id, c.score) for c in found.selection.kept] == [
        ("sure", 0.9), ("doubtful", 0.55), ("low", pytest.approx(0.55))
    ]  # fmt: skip


def test_evidence_never_lowers_a_score():
    high = candidate("high", "zebra zoo emma", score=0.5)
    found = run([Words(high)], [EMMA], [EMMA, high], [EMMA])
    assert found.judged["high"].score == 0.5
    assert found.judged["high"].scores == {"verifier": 0.5, "follow": pytest.approx(0.8 / 3)}


def test_nor_does_a_further_hop():
    """What a second hop found and turned down keeps its score in a third that says less."""
    found = candidate("found", "zebra zoo yard emma", score=0.45)
    found = Candidate(passage=found.passage, origin="follow", score=0.45, scores={"follow": 0.45})
    again = run([Words(found)], [EMMA], [EMMA, found], [EMMA])
    assert (again.judged["found"].score, again.judged["found"].scores["follow"]) == (0.45, 0.45)


def test_each_piece_stands_by_itself_and_the_best_score_counts():
    other = candidate("other", "brick", score=0.7, verified=True)
    scorer = Overlap()
    found = run([Words(AUSTEN)], [EMMA, other], [EMMA, other], [EMMA, other], scorer)
    assert {piece for piece, _ in scorer.asked} == {"emma was written by austen", "brick"}
    (kept,) = [c for c in found.selection.kept if c.id == "austen"]
    assert kept.score == pytest.approx(0.8 * 2 / 3)


def test_nothing_accepted_is_judged_again():
    scorer = Overlap()
    run([Words(EMMA, AUSTEN)], [EMMA], [EMMA], [EMMA], scorer)
    assert {i for _, i in scorer.asked} == {"austen"}


def test_what_was_spared_as_a_copy_is_not_read_in_a_later_hop_either(retriever):
    """And keeps its reason; one that stood no chance by itself may be judged beside the evidence."""
    retriever.add([Passage(id=f"copy{n}", text=TEXTS[0]) for n in range(BATCH)])
    read = []

    class Reading(Bridge):
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


def test_only_the_beginning_of_the_evidence_is_read():
    assert with_evidence("q", ["a b c d", "e f"], 2) == "q\na b\ne f"


class Bridge:
    """A verifier that reads: relevant is what shares two words with question and evidence."""

    name = "bridge"

    def __init__(self):
        from meve.calibration.maps import PlattCalibration

        self.calibration = PlattCalibration()

    def raw_scores(self, query, passages):
        asked = set(query.lower().replace("\n", " ").split())
        return np.array([3.0 if len(set(p.lower().split()) & asked) >= 2 else -3.0 for p in passages], dtype=np.float32)

    def score(self, query, passages):
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration):
        return self


TEXTS = ["emma book by austen lady", "austen lady lived at steventon", "zinc melts", "yellow yak"]


@pytest.fixture
def retriever():
    return Retriever.from_texts(
        TEXTS, ids=["emma", "austen", "zinc", "yak"], embedder=WordEmbedder(), verifier=Bridge(), tokens=WordCounter()
    )


def test_a_retrieval_with_two_hops_completes_the_evidence_and_says_how(retriever):
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


def test_further_hops_go_on_from_what_is_new_and_stop_where_nothing_is(retriever):
    context = retriever.retrieve("emma book home", fallback_k=0, hops=9)
    followed = [p for p in context.trace.phases if p.name == "follow"]
    assert [p.settings.get("evidence") for p in followed if not p.skipped] == [["emma"], ["austen"]]
    assert followed[-1].skipped == "no fresh evidence"


def test_without_anything_verified_there_is_nothing_to_go_on_from(retriever):
    context = retriever.retrieve("nothing whatever", fallback_k=0, hops=2)
    assert not context.passages
    assert next(p for p in context.trace.phases if p.name == "follow").skipped == "no fresh evidence"


def test_modes_that_verify_nothing_follow_nothing(retriever):
    context = retriever.retrieve("emma book home", mode="standard_rag", hops=2)
    assert "follow" not in [p.name for p in context.trace.phases]


@pytest.mark.parametrize(
    "wrong", [{"hops": 0}, {"evidence": 0}, {"evidence_words": 0}, {"follow_k": 0}, {"hops": True}]
)
def test_settings_out_of_range_are_refused(retriever, wrong):
    with pytest.raises(ConfigurationError):
        retriever.retrieve("emma", **wrong)


def test_evidence_too_long_for_the_model_is_said_and_what_was_verified_stays(retriever):
    from meve.errors import QueryError

    class Short(Bridge):
        def raw_scores(self, query, passages):
            if len(query.split()) > 4:
                raise QueryError("the query has too many words")
            return super().raw_scores(query, passages)

    retriever.engine = replace(retriever.engine, verifier=Short())
    context = retriever.retrieve("emma book home", fallback_k=0, hops=2)
    assert [p.passage.id for p in context.passages] == ["emma"]
    assert "too many words" in next(p for p in context.trace.phases if p.name == "follow").skipped
