"""Sentences: those that carry evidence stay, in order, and whoever reads them sees where some are missing."""

import numpy as np
import pytest

from meve import Passage, Retriever
from meve.components._sentence_splitter import split_sentences
from meve.errors import ConfigurationError
from meve.pipeline.phases.condense import condense
from meve.pipeline.pipeline import Pipeline
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.types import Candidate, Query

ASKED = [(Query(text="q"), "")]
TEXT = "Alpha one. Beta two. Gamma three. Delta four."


class ByWord:
    """A scorer that looks a sentence's first word up, per query."""

    name = "verifier"

    def __init__(self, **scores):
        self.scores, self.asked = scores, []

    def score(self, query, candidates):
        self.asked += [(query.text, c.passage.content) for c in candidates]
        return np.array([self.scores.get(c.passage.text.split()[0].lower(), 0.0) for c in candidates])


def candidate(text=TEXT, title="T", passage_id="a"):
    return Candidate(passage=Passage(id=passage_id, text=text, title=title), origin="dense", verified=True, tokens=9)


def cut(scorer, *candidates, asked=ASKED, threshold=0.5):
    return condense(asked, candidates, scorer, split_sentences, threshold)


@pytest.mark.parametrize(
    ("scores", "text", "left"),
    [
        ({"beta": 0.9, "delta": 0.6}, "… Beta two. … Delta four.", (1, 3)),
        ({"alpha": 0.9, "beta": 0.5}, "Alpha one. Beta two. …", (0, 1)),
        ({"gamma": 0.1}, "… Gamma three. …", (2,)),
        ({"alpha": 1, "beta": 1, "gamma": 1, "delta": 1}, TEXT, None),
    ],
)
def test_what_reaches_the_threshold_stays_or_the_best_and_gaps_are_marked(scores, text, left):
    (made,) = cut(ByWord(**scores), candidate())
    assert (made.passage.text, made.sentences) == (text, left)
    assert (made.passage.title, made.passage.id, made.verified) == ("T", "a", True)
    assert made.tokens == (9 if left is None else None), "the stored count is that of the whole"


def test_a_sentence_is_judged_under_its_title_and_a_single_one_not_at_all():
    scorer = ByWord()
    made = cut(scorer, candidate("Only one.", passage_id="b"), candidate())
    assert made[0].passage.text == "Only one."
    assert scorer.asked[0] == ("q", "T\nAlpha one.")
    assert len(scorer.asked) == 4


def test_evidence_may_save_a_sentence_but_a_passage_is_no_evidence_for_itself():
    class WithEvidence(ByWord):
        def score(self, query, candidates):
            self.asked += [(query.text, c.passage.text) for c in candidates]
            return np.array([0.9 if query.text == "q+" and "Gamma" in c.passage.text else 0.1 for c in candidates])

    scorer = WithEvidence()
    asked = [(Query(text="q"), ""), (Query(text="q+"), "b")]
    one, other = cut(scorer, candidate(), candidate(passage_id="b"), asked=asked)
    assert one.sentences == (2,)
    assert other.sentences == (0,)
    assert len([q for q, _ in scorer.asked if q == "q+"]) == 4


def test_a_retrieval_packs_sentences_within_the_budget_and_the_trace_says_which():
    texts = ["The moon is far. Cheese is food. It has craters.", "The moon shines at night. Bread is baked."]
    retriever = Retriever.from_texts(
        texts, ids=["a", "b"], embedder=WordEmbedder(), verifier=OverlapVerifier(), tokens=WordCounter()
    )
    whole = retriever.retrieve("moon", threshold=0.0)
    packed = retriever.retrieve("moon", threshold=0.0, packing="sentences")
    assert packed.tokens < whole.tokens
    assert packed.text == "The moon is far. …\n\nThe moon shines at night. …"
    assert packed.tokens == WordCounter().count(packed.text)
    assert {c.id: c.sentences for c in packed.trace.candidates} == {"a": (0,), "b": (0,)}
    phase = next(p for p in packed.trace.phases if p.name == "condense")
    assert phase.settings["threshold"] == 0.5
    assert retriever.get("a").text == texts[0]
    assert "condense" not in [p.name for p in whole.trace.phases]


def test_without_a_splitter_or_of_another_name_it_is_refused():
    from meve.pipeline._scorers import VerifierScorer
    from meve.pipeline.config import RetrieverConfig

    class One:
        name = "one"

        def search(self, query, k):
            return [candidate()]

    pipeline = Pipeline(
        sources=[One()], scorer=VerifierScorer(OverlapVerifier()), fallback=None, tokens=WordCounter(),
        embedder=WordEmbedder(),
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="sentence splitter"):
        pipeline.run(Query(text="q"), RetrieverConfig(packing="sentences", threshold=0.0))
    with pytest.raises(ConfigurationError, match="packing must be one of passages, sentences, got 'words'"):
        RetrieverConfig(packing="words")


def test_abbreviations_end_no_sentence():
    assert split_sentences("Dr. Smith met Mr. Jones. They left.") == ["Dr. Smith met Mr. Jones.", "They left."]
    assert split_sentences("  ") == []
