"""The contract of verifiers. Inherit `VerifierContract`, override its fixture, and run pytest.

class TestMine(VerifierContract):
    @pytest.fixture
    def verifier(self):
        return MyVerifier()
"""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from meve._extras import require_imports
from meve.calibration.probability_maps import PlattCalibration, calibration_from_dict
from meve.errors import QueryError
from meve.ports import VectorVerifier, Verifier
from meve.testing import NEEDS, SUITE

with require_imports(SUITE, NEEDS):
    import pytest

QUERY = "What orbits the Earth?"
PASSAGES = (
    "A cat sat on the mat and looked at the rain for the whole of a long, long afternoon.",
    "The Moon orbits the Earth.",
    "Grass",
    "Bread is baked from flour, water and salt.",
    "The Earth orbits the Sun, what orbits the Earth is another matter.",
)
RELEVANT = 1
STEEP = PlattCalibration(slope=7.0, intercept=-3.0)
WORD = "harbour "


class VerifierContract:
    """The rules of `meve.ports.Verifier`. Declare below what your verifier can't do; those rules are then skipped."""

    tolerance = 1e-4
    """The largest difference between two raw scores of the same pair; batches round differently."""
    detects_relevance = True
    """Whether a passage that answers scores above others."""
    rejects_long_queries = True
    """Whether the verifier raises for queries of `query_words`."""
    reads_long_passages = True
    """Whether an answer at the end of a passage beyond the window counts."""
    long_words = 5_000
    """A number of words that exceeds the window."""
    query_words = 5_000
    """A number of words that exceeds the longest query."""

    @pytest.fixture
    def verifier(self) -> Verifier:
        """Return the verifier under test."""
        raise NotImplementedError("override the fixture `verifier`")

    def test_name_is_not_blank(self, verifier: Verifier) -> None:
        assert verifier.name.strip() == verifier.name != ""

    @pytest.mark.parametrize("passages", [PASSAGES, ()])
    def test_each_passage_gets_one_probability(self, verifier: Verifier, passages: tuple[str, ...]) -> None:
        scores = verifier.score(QUERY, passages)
        assert scores.shape == (len(passages),)
        assert scores.dtype == np.float32
        assert ((scores >= 0) & (scores <= 1)).all()

    def test_each_passage_gets_one_raw_score(self, verifier: Verifier) -> None:
        raw = verifier.raw_scores(QUERY, PASSAGES)
        assert raw.shape == (len(PASSAGES),)
        assert raw.dtype == np.float32
        assert np.isfinite(raw).all()
        assert np.ptp(raw) > 0
        assert verifier.raw_scores(QUERY, []).shape == (0,)

    def test_scores_keep_passage_order(self, verifier: Verifier) -> None:
        forth, back = verifier.raw_scores(QUERY, PASSAGES), verifier.raw_scores(QUERY, PASSAGES[::-1])
        np.testing.assert_allclose(forth, back[::-1], atol=self.tolerance)

    def test_batch_gives_same_result_as_single_texts(self, verifier: Verifier) -> None:
        many = PASSAGES * 9
        single = [float(verifier.raw_scores(QUERY, [text])[0]) for text in PASSAGES] * 9
        np.testing.assert_allclose(verifier.raw_scores(QUERY, many), single, atol=self.tolerance)

    def test_same_pair_gets_same_score(self, verifier: Verifier) -> None:
        np.testing.assert_array_equal(verifier.score(QUERY, PASSAGES), verifier.score(QUERY, PASSAGES))

    def test_probabilities_are_calibrated_raw_scores(self, verifier: Verifier) -> None:
        raw, scores = verifier.raw_scores(QUERY, PASSAGES), verifier.score(QUERY, PASSAGES)
        np.testing.assert_allclose(scores, verifier.calibration.apply(raw), atol=1e-6)
        assert (np.diff(scores[np.argsort(raw)]) >= 0).all()

    def test_with_calibration_returns_new_verifier(self, verifier: Verifier) -> None:
        before = verifier.score(QUERY, PASSAGES)
        other = verifier.with_calibration(STEEP)
        assert other is not verifier
        assert type(other) is type(verifier)
        assert other.name == verifier.name
        assert other.calibration is STEEP
        np.testing.assert_allclose(other.score(QUERY, PASSAGES), STEEP.apply(verifier.raw_scores(QUERY, PASSAGES)))
        np.testing.assert_array_equal(verifier.score(QUERY, PASSAGES), before)

    def test_calibration_survives_json(self, verifier: Verifier) -> None:
        again = calibration_from_dict(json.loads(json.dumps(verifier.calibration.to_dict())))
        raw = verifier.raw_scores(QUERY, PASSAGES)
        np.testing.assert_array_equal(again.apply(raw), verifier.calibration.apply(raw))

    def test_answering_passage_scores_highest(self, verifier: Verifier) -> None:
        if not self.detects_relevance:
            pytest.skip(f"{verifier.name} declares that it doesn't detect relevance")
        scores = verifier.score(QUERY, PASSAGES)
        assert all(scores[RELEVANT] > scores[i] for i in (0, 2, 3))

    def test_too_long_query_raises(self, verifier: Verifier) -> None:
        if not self.rejects_long_queries:
            pytest.skip(f"{verifier.name} declares no longest query")
        with pytest.raises(QueryError, match=r"\d+ tokens"):
            verifier.score(WORD * self.query_words, PASSAGES)

    def test_end_of_long_passage_changes_result(self, verifier: Verifier) -> None:
        if not self.reads_long_passages:
            pytest.skip(f"{verifier.name} declares that it reads the beginning of a passage only")
        body = WORD * self.long_words
        raw = verifier.raw_scores(QUERY, [body + text * 3 for text in PASSAGES])
        assert np.ptp(raw) > 0

    def test_score_vectors_matches_score(self, verifier: Verifier) -> None:
        if not isinstance(verifier, VectorVerifier):
            pytest.skip(f"{verifier.name} reads texts, not vectors")
        embedder = verifier.embedder
        scores = verifier.score_vectors(embedder.embed_query(QUERY), embedder.embed_passages(PASSAGES))
        np.testing.assert_allclose(scores, verifier.score(QUERY, PASSAGES), atol=1e-6)
        assert verifier.score_vectors(embedder.embed_query(QUERY), embedder.embed_passages([])).shape == (0,)

    def test_threads_get_same_results_as_one_thread(self, verifier: Verifier) -> None:
        queries = [f"{QUERY} {i}" for i in range(16)]
        alone = [verifier.raw_scores(query, PASSAGES) for query in queries]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda query: verifier.raw_scores(query, PASSAGES), queries))
        np.testing.assert_allclose(together, alone, atol=self.tolerance)
