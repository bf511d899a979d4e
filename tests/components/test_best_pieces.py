"""Test that the pieces of a long passage are read that share the most words with the query."""

import numpy as np
import pytest

from meve import load_verifier
from meve.components.verifiers._best_pieces import choose_pieces
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError
from tests.runtimes import CountingRuntime

QUESTION = "When was the Eiffel Tower opened?"
ANSWER = "The Eiffel Tower was opened on 31 March 1889."
TOPICS = ("bread", "tides", "violins", "glaciers", "chess", "beetles", "canals", "stamps")
FILLER = [f"Number {n} of the notes on {topic} tells little that is new." for topic in TOPICS for n in range(25)]


def make_verifier(**options):
    shipped = load_shipped_verifier(threads=1)
    runtime = CountingRuntime(shipped._runtime)
    return CrossEncoderVerifier(runtime, name="counting", batch_size=1, **options)


def text_with(answer, place):
    return " ".join([*FILLER[:place], answer, *FILLER[place:]])


@pytest.mark.parametrize("place", [0, 100, 200])
def test_long_passage_scores_as_if_read_whole_from_few_pieces(place):
    text = text_with(ANSWER, place)
    few, whole = make_verifier(), make_verifier(piece_floor=0)
    assert few.raw_scores(QUESTION, [text]).tolist() == whole.raw_scores(QUESTION, [text]).tolist()
    assert all(ANSWER in piece for _, piece in few._runtime.pairs)
    assert len(few._runtime.pairs) <= 2 < len(whole._runtime.pairs)


def test_passage_without_words_of_the_query_is_read_whole():
    few, whole = make_verifier(piece_floor=1), make_verifier(piece_floor=0)
    for verifier in (few, whole):
        verifier.raw_scores("Qui est-ce ?", [" ".join(FILLER)])
    assert sorted(few._runtime.pairs) == sorted(whole._runtime.pairs)


def test_choice_does_not_depend_on_other_passages():
    texts = [text_with(ANSWER, 150), ANSWER, text_with("The tower was opened to visitors.", 20), " ".join(FILLER)]
    alone = [make_verifier().raw_scores(QUESTION, [text]).item() for text in texts]
    assert make_verifier().raw_scores(QUESTION, texts).tolist() == alone


def test_sentences_in_unread_pieces_have_probability_zero():
    verifier = make_verifier()
    sentences = [*FILLER[:100], ANSWER, *FILLER[100:]]
    text = " ".join(sentences)
    starts = [text.index(sentence) for sentence in sentences]
    (scores,) = verifier.score_sentences(
        QUESTION, [text], [[(at, at + len(sentence)) for at, sentence in zip(starts, sentences, strict=True)]]
    )
    ((_, piece),) = verifier._runtime.pairs
    assert np.argmax(scores) == 100
    assert scores[[n for n, start in enumerate(starts) if start > text.index(piece) + len(piece)]].max() == 0
    assert scores[0] == 0


def test_floor_is_a_share_of_the_best_score_in_the_passage():
    pieces = ["a cat", "an owl", "a fish", "an owl and a dog", "a fish", "an ant", "a dogs' home"]
    assert choose_pieces("owl and dog", pieces, [0, 4], 0.15).tolist() == [1, 3, 6]
    assert choose_pieces("owl and dog", pieces, [0, 4], 1.0).tolist() == [3, 6]
    assert choose_pieces("owl", pieces, [0, 4], 1.0).tolist() == [1, 4, 5, 6]
    assert choose_pieces("owl", pieces, [0, 4], 0.0).tolist() == list(range(7))


@pytest.mark.parametrize("floor", [-0.1, 1.1, float("nan")])
def test_floor_out_of_range_raises_error(floor):
    with pytest.raises(ConfigurationError, match=f"piece_floor must be between 0 and 1, got {floor}"):
        load_verifier(piece_floor=floor)


@pytest.mark.parametrize("name", [None, str(VERIFIER_FOLDER)])
def test_load_verifier_sets_the_floor(name):
    def count_pieces(**options):
        verifier = load_verifier(name, **options)
        verifier._runtime = CountingRuntime(verifier._runtime)
        verifier.raw_scores(QUESTION, [text_with(ANSWER, 100)])
        return len(verifier._runtime.pairs)

    assert count_pieces() <= 2 < count_pieces(piece_floor=0)
