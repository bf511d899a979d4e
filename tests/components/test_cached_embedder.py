"""Remembered vectors: the contract of embedders, never another text's, never more than the bound."""

import numpy as np
import pytest

from meve.components.embedders.cached import CachedEmbedder
from meve.errors import VectorError
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import CountedEmbedder, WordEmbedder


class TestRemembering(EmbedderContract):
    tells_meaning = False
    refuses_long_queries = False

    @pytest.fixture
    def embedder(self):
        return CachedEmbedder(WordEmbedder(), cache_size=3)


@pytest.fixture
def counted():
    return CountedEmbedder(WordEmbedder())


def test_a_text_is_embedded_once_however_often_it_is_asked_for(counted):
    """Also twice in one call; the order stays that of the call."""
    embedder = CachedEmbedder(counted)
    texts = ["bee", "ant", "bee"]
    for _ in range(2):
        np.testing.assert_array_equal(embedder.embed_passages(texts), WordEmbedder().embed_passages(texts))
    embedder.embed_passages(["cat", "ant"])
    assert counted.calls.passages == ["bee", "ant", "cat"]


def test_beyond_the_bound_what_was_asked_for_longest_ago_goes(counted):
    """And one call may bring more than the bound."""
    embedder = CachedEmbedder(counted, cache_size=2)
    embedder.embed_passages(["ant", "bee"])
    embedder.embed_passages(["ant"])
    embedder.embed_passages(["cat"])
    embedder.embed_passages(["ant"])
    assert counted.calls.passages == ["ant", "bee", "cat"]
    texts = ["dog", "elk", "fox", "ant"]
    for _ in range(2):
        np.testing.assert_array_equal(embedder.embed_passages(texts), WordEmbedder().embed_passages(texts))
    assert counted.calls.passages[3:] == ["dog", "elk", "fox", "dog", "ant"], "elk and fox were the last to come in"


def test_what_is_done_to_a_vector_reaches_no_other(counted):
    embedder = CachedEmbedder(counted)
    embedder.embed_passages(["ant"])[:] = 7
    np.testing.assert_array_equal(embedder.embed_passages(["ant"]), WordEmbedder().embed_passages(["ant"]))


def test_vectors_that_cannot_be_used_are_refused_and_not_remembered(counted, monkeypatch):
    embedder = CachedEmbedder(counted)
    monkeypatch.setattr(counted, "embed_passages", lambda texts: np.full((len(texts), 27), np.nan))
    with pytest.raises(VectorError, match="words-by-initial"):
        embedder.embed_passages(["ant"])
    monkeypatch.undo()
    np.testing.assert_array_equal(embedder.embed_passages(["ant"]), WordEmbedder().embed_passages(["ant"]))
