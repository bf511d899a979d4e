"""Test that of a long passage the pieces that fit the query best are read."""

import numpy as np
import pytest

from meve import load_verifier
from meve.components.verifiers import MAX_PIECES
from meve.components.verifiers._best_pieces import choose_pieces
from meve.components.verifiers._shipped import VERIFIER_FOLDER, load_shipped_verifier
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.errors import ConfigurationError
from tests.runtimes import CountingRuntime

QUESTION = "When was the Eiffel Tower opened?"
ANSWER = "The Eiffel Tower was opened on 31 March 1889."
TOPICS = ("bread", "tides", "violins", "glaciers", "chess", "beetles", "canals", "stamps")
FILLER = [f"Number {n} of the notes on {topic} tells little that is new." for topic in TOPICS for n in range(25)]


def make_verifier(max_pieces):
    shipped = load_shipped_verifier(threads=1)
    runtime = CountingRuntime(shipped._runtime)
    return CrossEncoderVerifier(runtime, name="counting", batch_size=1, max_pieces=max_pieces)


def text_with(answer, place):
    return " ".join([*FILLER[:place], answer, *FILLER[place:]])


@pytest.mark.parametrize("place", [0, 100, 200])
def test_long_passage_scores_as_if_read_whole_from_few_pieces(place):
    text = text_with(ANSWER, place)
    few, whole = make_verifier(2), make_verifier(None)
    assert few.raw_scores(QUESTION, [text]).tolist() == whole.raw_scores(QUESTION, [text]).tolist()
    assert any(ANSWER in piece for _, piece in few._runtime.pairs)
    assert len(few._runtime.pairs) == 2 < MAX_PIECES < len(whole._runtime.pairs)


def test_passage_with_few_pieces_is_read_whole():
    verifier = make_verifier(3)
    text = " ".join([*FILLER[:40], ANSWER])
    verifier.raw_scores(QUESTION, [text])
    pieces = [piece for _, piece in verifier._runtime.pairs]
    assert 1 < len(pieces) <= 3
    assert all(any(sentence in piece for piece in pieces) for sentence in (*FILLER[:40], ANSWER))


def test_passage_without_words_of_the_query_is_read_whole():
    few, whole = make_verifier(2), make_verifier(None)
    for verifier in (few, whole):
        verifier.raw_scores("Qui est-ce ?", [" ".join(FILLER)])
    assert sorted(few._runtime.pairs) == sorted(whole._runtime.pairs)


def test_choice_does_not_depend_on_other_passages():
    texts = [text_with(ANSWER, 150), ANSWER, text_with("The tower was opened to visitors.", 20), " ".join(FILLER)]
    alone = [make_verifier(2).raw_scores(QUESTION, [text]).item() for text in texts]
    assert make_verifier(2).raw_scores(QUESTION, texts).tolist() == alone


def test_sentences_in_unread_pieces_have_probability_zero():
    verifier = make_verifier(1)
    sentences = [*FILLER[:150], ANSWER, *FILLER[150:]]
    text = " ".join(sentences)
    starts = [text.index(sentence) for sentence in sentences]
    (scores,) = verifier.score_sentences(
        QUESTION, [text], [[(at, at + len(sentence)) for at, sentence in zip(starts, sentences, strict=True)]]
    )
    ((_, piece),) = verifier._runtime.pairs
    unread = [n for n, sentence in enumerate(sentences) if sentence.split(".")[0] not in piece]
    assert np.argmax(scores) == 150
    assert len(unread) > 150
    assert scores[unread[:-1]].max() < 0.5
    assert scores[0] == scores[-1] == 0


def test_pieces_are_ranked_within_their_passage():
    pieces = ["a cat", "an owl", "a dog", "an owl and a dog", "a fish", "an ant", "a fox"]
    assert choose_pieces("owl and dog", pieces, [0, 4], 2).tolist() == [1, 3, 4, 5, 6]
    assert choose_pieces("owl", pieces, [0, 4], 3).tolist() == [0, 1, 3, 4, 5, 6]
    assert choose_pieces("owl and dog", pieces, [0, 4], None).tolist() == list(range(7))


@pytest.mark.parametrize("max_pieces", [0, -1])
def test_number_of_pieces_below_one_raises_error(max_pieces):
    with pytest.raises(ConfigurationError, match=f"max_pieces must be at least 1, or None for all, got {max_pieces}"):
        load_verifier(max_pieces=max_pieces)


@pytest.mark.parametrize("name", [None, str(VERIFIER_FOLDER)])
def test_load_verifier_sets_the_number_of_pieces(name):
    def count_pieces(**options):
        verifier = load_verifier(name, **options)
        verifier._runtime = CountingRuntime(verifier._runtime)
        verifier.raw_scores(QUESTION, [text_with(ANSWER, 100)])
        return len(verifier._runtime.pairs)

    assert count_pieces(max_pieces=1) == 1
    assert count_pieces() == MAX_PIECES < count_pieces(max_pieces=None)
