"""Test the embedder cache."""

import numpy as np
import pytest

from meve.components.embedders.cached import CachedEmbedder
from meve.errors import VectorError
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import CountingEmbedder, WordEmbedder


class TestCached(EmbedderContract):
    is_semantic = False
    rejects_long_queries = False

    @pytest.fixture
    def embedder(self):
        return CachedEmbedder(WordEmbedder(), cache_size=3)


@pytest.fixture
def counted():
    return CountingEmbedder(WordEmbedder())


def test_repeated_text_is_embedded_once(counted):
    embedder = CachedEmbedder(counted)
    texts = ["bee", "ant", "bee"]
    for _ in range(2):
        np.testing.assert_array_equal(embedder.embed_passages(texts), WordEmbedder().embed_passages(texts))
    embedder.embed_passages(["cat", "ant"])
    assert counted.calls.passages == ["bee", "ant", "cat"]


def test_full_cache_evicts_least_recently_used(counted):
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


def test_changing_a_returned_vector_leaves_cache_unchanged(counted):
    embedder = CachedEmbedder(counted)
    embedder.embed_passages(["ant"])[:] = 7
    np.testing.assert_array_equal(embedder.embed_passages(["ant"]), WordEmbedder().embed_passages(["ant"]))


def test_invalid_vectors_raise_and_are_not_cached(counted, monkeypatch):
    embedder = CachedEmbedder(counted)
    monkeypatch.setattr(counted, "embed_passages", lambda texts: np.full((len(texts), 27), np.nan))
    with pytest.raises(VectorError, match="words-by-initial"):
        embedder.embed_passages(["ant"])
    monkeypatch.undo()
    np.testing.assert_array_equal(embedder.embed_passages(["ant"]), WordEmbedder().embed_passages(["ant"]))
