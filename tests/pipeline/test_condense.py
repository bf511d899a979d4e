"""Test the reduction of passages to evidence sentences."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.components._sentence_splitter import split_passage, split_sentences
from meve.components._shared_words import shares_code
from meve.errors import ConfigurationError
from meve.pipeline._scorers import VerifierScorer
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.phases.condense import READ_SENTENCE, condense
from meve.pipeline.pipeline import Pipeline
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.types import Candidate, Query
from tests.fake_components import make_components

QUERIES = [(Query(text="q"), "")]
TEXT = "Alpha one. Beta two. Gamma three. Delta four."


class WordScorer:
    """A scorer that looks up the first word of a sentence per query."""

    name = "verifier"

    def __init__(self, **scores):
        self.scores, self.queries = scores, []

    def score(self, query, candidates):
        self.queries += [(query.text, c.passage.content) for c in candidates]
        return np.array([self.scores.get(c.passage.text.split()[0].lower(), 0.0) for c in candidates])


class RatingScorer(WordScorer):
    """A scorer that rates the sentences of the passages it reads."""

    scores_sentences = True

    def score(self, query, candidates):
        raise AssertionError("no sentence must be read by itself")

    def score_sentences(self, query, candidates, sentences):
        parts = [[c.passage.content[a:b] for a, b in spans] for c, spans in zip(candidates, sentences, strict=True)]
        self.queries += [(query.text, c.id, part) for c, part in zip(candidates, parts, strict=True)]
        return [np.array([self.scores.get(text.split()[0].lower(), 0.0) for text in part]) for part in parts]


def candidate(text=TEXT, title="T", passage_id="a", verified=True):
    passage = Passage(id=passage_id, text=text, title=title)
    return Candidate(passage=passage, origin="dense", scores={"verifier": 0.8}, verified=verified, tokens=9)


def condense_one(scorer, *candidates, queries=QUERIES, threshold=0.5):
    return condense(queries, candidates, scorer, split_sentences, threshold)


@pytest.mark.parametrize(
    ("scores", "verified", "text", "left"),
    [
        ({"beta": 0.9, "delta": 0.6}, True, "… Beta two. … Delta four.", (1, 3)),
        ({"alpha": 0.9, "beta": 0.5}, False, "Alpha one. Beta two. …", (0, 1)),
        ({"alpha": 0.9, "beta": 0.46, "gamma": 0.44}, True, "Alpha one. Beta two. …", (0, 1)),
        ({"alpha": 0.9, "beta": 0.46, "gamma": 0.44}, False, "Alpha one. …", (0,)),
        ({"gamma": 0.1}, True, TEXT, None),
        ({"gamma": 0.1}, False, "… Gamma three. …", (2,)),
        ({"alpha": 1, "beta": 1, "gamma": 1, "delta": 1}, True, TEXT, None),
    ],
)
def test_condense_keeps_sentences_above_the_threshold_and_marks_gaps(scores, verified, text, left):
    """If none is above it, a verified passage stays whole, and of another one the best sentence stays.

    In a verified passage, the threshold is a share of the best score.
    """
    (condensed,) = condense_one(WordScorer(**scores), candidate(verified=verified))
    assert (condensed.passage.text, condensed.sentences) == (text, left)
    assert (condensed.passage.title, condensed.passage.id, condensed.verified) == ("T", "a", verified)
    assert condensed.tokens == (9 if left is None else None), "the stored count is that of the whole"


def test_sentence_is_scored_with_its_title_and_a_single_sentence_is_not_scored():
    scorer = WordScorer()
    condensed = condense_one(scorer, candidate("Only one.", passage_id="b"), candidate())
    assert condensed[0].passage.text == "Only one."
    assert scorer.queries[0] == ("q", "T\nAlpha one.")
    assert len(scorer.queries) == 4


def test_sentence_is_kept_by_other_evidence_but_not_by_its_own_passage():
    class WithEvidence(WordScorer):
        def score(self, query, candidates):
            self.queries += [(query.text, c.passage.text) for c in candidates]
            return np.array([0.9 if query.text == "q+" and "Gamma" in c.passage.text else 0.1 for c in candidates])

    scorer = WithEvidence()
    queries = [(Query(text="q"), ""), (Query(text="q+"), "b")]
    one, other = condense_one(scorer, candidate(), candidate(passage_id="b"), queries=queries)
    assert one.sentences == (2,)
    assert other.sentences is None
    assert len([q for q, _ in scorer.queries if q == "q+"]) == 4


def test_scorer_that_rates_sentences_gets_their_places_and_reads_none_again():
    scorer = RatingScorer(beta=0.9, delta=0.6)
    one, other = condense_one(scorer, candidate(), candidate("Only one.", passage_id="b"))
    assert (one.sentences, other.sentences) == ((1, 3), None)
    assert scorer.queries == [("q", "a", ["Alpha one.", "Beta two.", "Gamma three.", "Delta four."])]


def test_repeated_sentence_is_rated_at_each_of_its_places():
    class ByPlace(RatingScorer):
        def score_sentences(self, query, candidates, sentences):
            return [np.array([start / 100 for start, _ in spans]) for spans in sentences]

    (condensed,) = condense_one(ByPlace(), candidate("Alpha one. Beta. Alpha one. Beta."), threshold=0.1)
    assert condensed.sentences == (1, 2, 3), "after the title, the places are 2, 13, 19 and 30"


def test_evidence_rates_the_sentences_of_passages_that_a_further_hop_has_read():
    scorer = RatingScorer(gamma=0.9)
    queries = [(Query(text="q"), ""), (Query(text="q+"), "b")]
    followed = replace(candidate(passage_id="c"), scores={"follow": 0.7}, read_with=("b",))
    condense_one(scorer, candidate(), candidate(passage_id="b"), followed, queries=queries)
    assert [(query, name) for query, name, _ in scorer.queries] == [("q", "a"), ("q", "b"), ("q+", "c")]


def test_packing_sentences_keeps_the_budget_and_traces_them():
    texts = ["The moon is far. Cheese is food. It has craters.", "The moon shines at night. Bread is baked."]
    retriever = Retriever.from_texts(texts, ids=["a", "b"], **make_components())
    whole = retriever.retrieve("moon", threshold=0.0)
    packed = retriever.retrieve("moon", threshold=0.0, packing="sentences")
    assert packed.tokens < whole.tokens
    assert packed.text == "The moon is far. …\n\nThe moon shines at night. …"
    assert packed.tokens == WordCounter().count(packed.text)
    assert {c.id: c.sentences for c in packed.trace.candidates} == {"a": (0,), "b": (0,)}
    phase = next(p for p in packed.trace.phases if p.name == "condense")
    assert phase.settings["threshold"] == READ_SENTENCE, "each is read by itself"
    assert retriever.get("a").text == texts[0]
    assert "condense" not in [p.name for p in whole.trace.phases]


def test_packing_sentences_without_a_splitter_or_an_unknown_packing_raises_error():
    source = SimpleNamespace(name="one", search=lambda *_: [candidate()])
    pipeline = Pipeline(
        sources=[source], scorer=VerifierScorer(OverlapVerifier()), fallback=None, tokens=WordCounter(),
        embedder=WordEmbedder(),
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="sentence splitter"):
        pipeline.run(Query(text="q"), RetrieverConfig(packing="sentences", threshold=0.0))
    with pytest.raises(ConfigurationError, match="packing must be one of passages, sentences, got 'words'"):
        RetrieverConfig(packing="words")


def test_abbreviation_does_not_end_a_sentence():
    assert split_sentences("Dr. Smith met Mr. Jones. They left.") == ["Dr. Smith met Mr. Jones.", "They left."]
    assert split_sentences("  ") == []


TABLE = "| Code | Meaning |\n|---|---|\n| E03 | too cold |\n| E05 | too hot |\n| E11 | no sun |"


def rated_rows(verified, rate, question="What does E05 mean?"):
    """Return a table with codes, reduced by a scorer that rates the header best and all rows the same."""

    class FlatScorer(RatingScorer):
        def score_sentences(self, query, candidates, sentences):
            return [np.array([rate if n else 2 * rate for n in range(len(spans))]) for spans in sentences]

    queries = [(Query(text=question), "")]
    one = candidate(TABLE, verified=verified)
    (condensed,) = condense(queries, [one], FlatScorer(), split_passage, 0.3, shares_code=shares_code)
    return condensed.passage.text


@pytest.mark.parametrize("verified", [True, False])
def test_row_with_the_code_of_the_question_stays_and_a_header_alone_does_not(verified):
    assert "| E05 | too hot |" in rated_rows(verified, 0.4)
    weak = rated_rows(verified, 0.1)
    assert weak == TABLE if verified else "| E05 | too hot |" in weak and "E03" not in weak


def test_header_is_not_the_best_sentence_of_a_table():
    assert rated_rows(verified=False, rate=0.1, question="Why so cold?").endswith("| E03 | too cold |\n…")


def test_question_in_a_passage_keeps_its_answer():
    text = "Q: Is it organic? A: Only the meat is. Q: Is it cheap? A: It isn't."
    (condensed,) = condense_one(RatingScorer(**{"q:": 0.9}), candidate(text.replace("Q: Is it cheap?", "It is dear.")))
    assert "A: Only the meat is." in condensed.passage.text
    assert "dear" not in condensed.passage.text
