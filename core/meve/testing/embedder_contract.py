"""The contract of embedders. Inherit `EmbedderContract`, override its fixture, and run pytest.

class TestMine(EmbedderContract):
    @pytest.fixture
    def embedder(self):
        return MyEmbedder()
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from meve._extras import require_imports
from meve._formulas import normalize
from meve.errors import QueryError
from meve.ports import Embedder
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest

TEXTS = (
    "The Moon orbits the Earth.",
    "A cat sat on the mat and looked at the rain for the whole of a long, long afternoon.",
    "Grass",
    "Bread is baked from flour, water and salt.",
)
WORD = "harbour "


class EmbedderContract:
    """The rules of `meve.ports.Embedder`. Declare below what your embedder can't do; those rules are then skipped."""

    tolerance = 1e-4
    """The largest difference between two vectors of the same text, per coordinate; batches round differently."""
    rejects_long_queries = True
    """Whether the embedder raises for queries of `query_words`."""
    reads_long_passages = True
    """Whether the end of a passage beyond the window counts."""
    long_words = 5_000
    """A number of words that exceeds the window."""
    query_words = 5_000
    """A number of words that exceeds the longest query."""
    is_semantic = True
    """Whether texts on the same topic have closer vectors."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """Return the embedder under test."""
        raise NotImplementedError("override the fixture `embedder`")

    def test_name_is_not_blank(self, embedder: Embedder) -> None:
        assert embedder.name
        assert embedder.name == embedder.name.strip()

    def test_similarity_is_cosine_or_dot(self, embedder: Embedder) -> None:
        assert embedder.similarity in ("cosine", "dot")

    def test_query_becomes_one_float32_vector(self, embedder: Embedder) -> None:
        vector = embedder.embed_query(TEXTS[0])
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert np.isfinite(vector).all()

    @pytest.mark.parametrize("texts", [TEXTS, ()])
    def test_passages_become_one_float32_row_each(self, embedder: Embedder, texts: tuple[str, ...]) -> None:
        vectors = embedder.embed_passages(texts)
        assert vectors.shape == (len(texts), embedder.dimension)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()

    def test_rows_keep_passage_order(self, embedder: Embedder) -> None:
        forth, back = embedder.embed_passages(TEXTS), embedder.embed_passages(TEXTS[::-1])
        np.testing.assert_allclose(forth, back[::-1], atol=self.tolerance)
        assert np.abs(forth[0] - forth[1]).max() > 10 * self.tolerance

    def test_batch_gives_same_result_as_single_texts(self, embedder: Embedder) -> None:
        single = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
        np.testing.assert_allclose(embedder.embed_passages(TEXTS), single, atol=self.tolerance)

    def test_same_text_gives_same_vector(self, embedder: Embedder) -> None:
        np.testing.assert_array_equal(embedder.embed_query(TEXTS[0]), embedder.embed_query(TEXTS[0]))
        np.testing.assert_array_equal(embedder.embed_passages(TEXTS), embedder.embed_passages(TEXTS))

    def test_cosine_vectors_have_length_one(self, embedder: Embedder) -> None:
        if embedder.similarity != "cosine":
            pytest.skip(f"{embedder.name} compares by {embedder.similarity}")
        vectors = np.vstack([embedder.embed_passages(TEXTS), embedder.embed_query(TEXTS[0])])
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)

    def test_matching_passage_is_nearest_to_query(self, embedder: Embedder) -> None:
        if not self.is_semantic:
            pytest.skip(f"{embedder.name} declares no semantic vectors")
        scores = embedder.embed_passages(TEXTS) @ embedder.embed_query("What circles around the Earth? The Moon")
        assert int(np.argmax(scores)) == 0

    def test_too_long_query_raises(self, embedder: Embedder) -> None:
        if not self.rejects_long_queries:
            pytest.skip(f"{embedder.name} declares no longest query")
        with pytest.raises(QueryError, match=r"\d+ tokens"):
            embedder.embed_query(WORD * self.query_words)

    def test_end_of_long_passage_changes_result(self, embedder: Embedder) -> None:
        if not self.reads_long_passages:
            pytest.skip(f"{embedder.name} declares that it reads the beginning of a passage only")
        body = WORD * self.long_words
        one, other = normalize(embedder.embed_passages([body + TEXTS[0] * 9, body + TEXTS[3] * 9]))
        assert float(one @ other) < 1 - 1e-6

    def test_threads_get_same_results_as_one_thread(self, embedder: Embedder) -> None:
        queries = [f"{text} {i}" for i in range(4) for text in TEXTS]
        alone = [embedder.embed_query(text) for text in queries]
        passages = embedder.embed_passages(TEXTS)
        with ThreadPoolExecutor(8) as pool:
            batches = [pool.submit(embedder.embed_passages, TEXTS) for _ in range(8)]
            together = list(pool.map(embedder.embed_query, queries))
        np.testing.assert_allclose(together, alone, atol=self.tolerance)
        for batch in batches:
            np.testing.assert_allclose(batch.result(), passages, atol=self.tolerance)
