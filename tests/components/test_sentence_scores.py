"""Test the ratings of sentences from the reading that scores their passage."""

import numpy as np
import pytest

from meve import Retriever
from meve.components.verifiers._sentence_scores import TokenReading, rate_sentences
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ModelError, QueryError
from meve.evaluation._model_caches import SharedVerifier
from meve.testing.fakes import WordEmbedder
from tests.runtimes import WordCountingRuntime

QUESTION = "When was the Eiffel Tower opened?"
TOWER = "Paris is the capital of France. The Eiffel Tower was opened on 31 March 1889. It is painted every seven years."
MOON = "The Moon orbits the Earth. Its far side was first photographed in 1959."


class CountingRuntime:
    """A runtime that counts the pairs which another one reads."""

    def __init__(self, inner):
        self._inner, self.pairs = inner, []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def logits(self, batches):
        self.pairs += [pair for batch in batches for pair in batch]
        return self._inner.logits(batches)

    def read(self, batches):
        self.pairs += [pair for batch in batches for pair in batch]
        return self._inner.read(batches)


@pytest.fixture
def verifier():
    shipped = load_shipped_verifier(threads=1)
    runtime = CountingRuntime(shipped._runtime)
    return CrossEncoderVerifier(runtime, name=shipped.name, calibration=shipped.calibration, batch_size=1)


def spans_of(text):
    ends = [n + 1 for n, letter in enumerate(text) if letter == "."]
    return list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))


def test_sentence_with_the_answer_is_rated_highest(verifier):
    (scores,) = verifier.score_sentences(QUESTION, [TOWER], [spans_of(TOWER)])
    assert scores.shape == (3,)
    assert int(scores.argmax()) == 1
    assert 0 <= scores.min() <= scores.max() <= 1


def test_sentence_scores_do_not_depend_on_other_passages(verifier):
    alone = [verifier.score_sentences(QUESTION, [text], [spans_of(text)])[0] for text in (TOWER, MOON)]
    fresh = load_shipped_verifier(threads=2)
    fresh = CrossEncoderVerifier(fresh._runtime, name="fresh", batch_size=1)
    together = fresh.score_sentences(QUESTION, [TOWER, MOON], [spans_of(TOWER), spans_of(MOON)])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sentences_of_scored_passages_are_not_read_again(verifier):
    verifier.raw_scores(QUESTION, [TOWER, MOON])
    verifier.score_sentences(QUESTION, [MOON, TOWER], [spans_of(MOON), spans_of(TOWER)])
    assert sorted(verifier._runtime.pairs) == [(QUESTION, TOWER), (QUESTION, MOON)]
    verifier.with_cache(0).score_sentences("Another question?", [MOON], [spans_of(MOON)])
    assert len(verifier._runtime.pairs) == 3


def test_every_sentence_of_a_long_passage_gets_a_score_and_an_empty_one_gets_zero(verifier):
    text = " ".join(f"The tower number {n} was opened in {1800 + n}." for n in range(120))
    spans = [(at, text.index(".", at) + 1) for at in range(len(text)) if text.startswith("The", at)]
    (scores,) = verifier.score_sentences("Which tower was opened in 1900?", [text], [[*spans, (5, 5)]])
    assert len(verifier._runtime.pairs) > 2, "the passage must exceed the window"
    assert len(scores) == 121
    assert np.all(scores[:-1] > 0)
    assert scores[-1] == 0


def test_sentences_read_with_other_questions_and_in_stretches_get_their_own_ratings(verifier):
    pasted = "  File app/beds.py, line 12, in water_bed. " * 14 + QUESTION
    texts = [TOWER, " ".join([MOON] * 24 + [TOWER])]
    spans = [spans_of(text) for text in texts]
    verifier.score_pairs([(query, text) for text in texts for query in (QUESTION, pasted)])
    read = len(verifier._runtime.pairs)
    assert read > 8, "question and passage must exceed the window"
    fresh = verifier.with_cache(0)
    for query in (QUESTION, pasted):
        rated = verifier.score_sentences(query, texts, spans)
        assert len(verifier._runtime.pairs) == read
        for one, other in zip(rated, fresh.score_sentences(query, texts, spans), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
        assert [int(scores.argmax()) - len(scores) for scores in rated] == [-2, -2]
        read = len(verifier._runtime.pairs)


def test_sentence_packing_reads_nothing_after_verification(verifier):
    def pairs_read(**settings):
        own = CrossEncoderVerifier(CountingRuntime(verifier._runtime._inner), name="own", batch_size=1)
        retriever = Retriever.from_texts([TOWER, MOON], ids=["a", "b"], embedder=WordEmbedder(), verifier=own)
        context = retriever.retrieve(QUESTION, threshold=0.0, **settings)
        return context, sorted(own._runtime.pairs)

    whole, before = pairs_read()
    packed, after = pairs_read(packing="sentences")
    assert after == before
    assert len(after) == 2
    assert packed.tokens < whole.tokens
    assert "1889" in packed.text


def test_shared_verifier_passes_sentence_scores_on(verifier):
    shared = SharedVerifier(verifier)
    assert shared.scores_sentences
    expected = verifier.score_sentences(QUESTION, [TOWER], [spans_of(TOWER)])[0]
    np.testing.assert_array_equal(shared.score_sentences(QUESTION, [TOWER], [spans_of(TOWER)])[0], expected)


def test_verifier_without_logits_per_token_scores_no_sentences():
    verifier = CrossEncoderVerifier(WordCountingRuntime(), name="plain")
    assert not verifier.scores_sentences
    assert not SharedVerifier(verifier).scores_sentences
    with pytest.raises(ModelError, match="plain has no logit per token"):
        verifier.score_sentences("q", ["a."], [[(0, 2)]])


def test_too_long_query_raises_error(verifier):
    with pytest.raises(QueryError):
        verifier.score_sentences("word " * 5_000, [TOWER], [spans_of(TOWER)])


def test_sentence_in_several_pieces_gets_the_best_of_those_that_hold_most_of_it():
    def reading(start, *logits):
        spans = [(start + 2 * n, start + 2 * n + 1) for n in range(len(logits))]
        return TokenReading(np.array(spans), np.array(logits, dtype=np.float32))

    pieces = [reading(0, 1, 3, 5), reading(4, 9, 2), reading(2, 4, 6)]
    assert rate_sentences(pieces, [(0, 6), (2, 6), (6, 7), (8, 9)]).tolist()[:3] == [3.0, 5.0, 2.0]


def test_shipped_graph_has_logits_per_token():
    assert load_shipped_verifier().scores_sentences, f"run recipes.sentences.fit on {VERIFIER_FOLDER}"
