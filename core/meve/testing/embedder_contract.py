"""What every embedder must do: inherit the rules, give the fixture, and pytest runs them.

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
    """The rules of `meve.ports.Embedder`. What an implementation can't do it declares below, and it's skipped aloud."""

    tolerance = 1e-4
    """How far two vectors of the same text may lie apart, in any coordinate: batches round differently."""
    refuses_long_queries = True
    """Whether it has a window, and refuses longer queries."""
    reads_long_passages = True
    """Whether the end of a passage longer than its window counts."""
    long_words = 5_000
    """Words that are certainly more than the window."""
    tells_meaning = True
    """Whether it puts texts about one thing closer than others."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("override the fixture `embedder`")

    def test_it_has_a_name(self, embedder: Embedder) -> None:
        """An index remembers the embedder by a name, so there is one, and it stays."""
        assert embedder.name
        assert embedder.name == embedder.name.strip() == embedder.name

    def test_it_compares_by_cosine_or_dot(self, embedder: Embedder) -> None:
        """An index knows two ways to compare."""
        assert embedder.similarity in ("cosine", "dot")

    def test_a_query_is_one_float32_vector(self, embedder: Embedder) -> None:
        """A query becomes a vector of shape (d,), of finite float32."""
        vector = embedder.embed_query(TEXTS[0])
        assert vector.shape == (embedder.dimension,)
        assert vector.dtype == np.float32
        assert np.isfinite(vector).all()

    def test_passages_are_one_float32_row_each(self, embedder: Embedder) -> None:
        """A list of n passages becomes an array of shape (n, d), of finite float32."""
        vectors = embedder.embed_passages(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dimension)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()

    def test_no_passages_are_no_rows(self, embedder: Embedder) -> None:
        """An empty list becomes an array of shape (0, d)."""
        vectors = embedder.embed_passages([])
        assert vectors.shape == (0, embedder.dimension)
        assert vectors.dtype == np.float32

    def test_rows_keep_the_order_given(self, embedder: Embedder) -> None:
        """Row i belongs to text i, whatever order the texts are in."""
        forth, back = embedder.embed_passages(TEXTS), embedder.embed_passages(TEXTS[::-1])
        np.testing.assert_allclose(forth, back[::-1], atol=self.tolerance)
        assert np.abs(forth[0] - forth[1]).max() > 10 * self.tolerance

    def test_a_batch_is_no_other_than_one_by_one(self, embedder: Embedder) -> None:
        """A text's vector doesn't depend on its neighbours in the batch."""
        single = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
        np.testing.assert_allclose(embedder.embed_passages(TEXTS), single, atol=self.tolerance)

    def test_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        """Asked twice, it answers the same, bit for bit."""
        np.testing.assert_array_equal(embedder.embed_query(TEXTS[0]), embedder.embed_query(TEXTS[0]))
        np.testing.assert_array_equal(embedder.embed_passages(TEXTS), embedder.embed_passages(TEXTS))

    def test_cosine_vectors_have_length_one(self, embedder: Embedder) -> None:
        """Vectors compared by cosine have length 1, so that an inner product is the cosine."""
        if embedder.similarity != "cosine":
            pytest.skip(f"{embedder.name} compares by {embedder.similarity}")
        vectors = np.vstack([embedder.embed_passages(TEXTS), embedder.embed_query(TEXTS[0])])
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)

    def test_a_query_finds_its_passage(self, embedder: Embedder) -> None:
        """Query and passage vectors live in one space: of four passages the one about the query is the closest."""
        if not self.tells_meaning:
            pytest.skip(f"{embedder.name} doesn't tell meaning: an untrained model, or a toy")
        scores = embedder.embed_passages(TEXTS) @ embedder.embed_query("What circles around the Earth? The Moon")
        assert int(np.argmax(scores)) == 0

    def test_a_query_beyond_the_window_is_refused(self, embedder: Embedder) -> None:
        """A query is never cut: one longer than the window is a QueryError that says so."""
        if not self.refuses_long_queries:
            pytest.skip(f"{embedder.name} declares no window")
        with pytest.raises(QueryError, match=r"\d+ tokens"):
            embedder.embed_query(WORD * self.long_words)

    def test_the_tail_of_a_long_passage_counts(self, embedder: Embedder) -> None:
        """A passage is never cut unsaid: another ending, far beyond the window, gives another vector."""
        if not self.reads_long_passages:
            pytest.skip(f"{embedder.name} declares that it reads the beginning of a passage only")
        body = WORD * self.long_words
        one, other = normalize(embedder.embed_passages([body + TEXTS[0] * 9, body + TEXTS[3] * 9]))
        assert float(one @ other) < 1 - 1e-6

    def test_eight_threads_get_what_one_gets(self, embedder: Embedder) -> None:
        """Shared between threads, it answers each as if it were alone."""
        queries = [f"{text} {i}" for i in range(4) for text in TEXTS]
        alone = [embedder.embed_query(text) for text in queries]
        passages = embedder.embed_passages(TEXTS)
        with ThreadPoolExecutor(8) as pool:
            batches = [pool.submit(embedder.embed_passages, TEXTS) for _ in range(8)]
            together = list(pool.map(embedder.embed_query, queries))
        np.testing.assert_allclose(together, alone, atol=self.tolerance)
        for batch in batches:
            np.testing.assert_allclose(batch.result(), passages, atol=self.tolerance)
