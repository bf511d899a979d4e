"""What every verifier must do: inherit the rules, give the fixture, and pytest runs them.

class TestMine(VerifierContract):
    @pytest.fixture
    def verifier(self):
        return MyVerifier()
"""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from meve._extras import require_imports
from meve.calibration.maps import PlattCalibration, calibration_from_dict
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
    """The rules of `meve.ports.Verifier`. What an implementation can't do it declares below, and it's skipped aloud."""

    tolerance = 1e-4
    """How far two raw scores of the same pair may lie apart: batches round differently."""
    tells_relevance = True
    """Whether it puts a passage that answers above ones that don't."""
    refuses_long_queries = True
    """Whether it has a window, and refuses queries that leave no room in it."""
    reads_long_passages = True
    """Whether an answer at the end of a passage longer than its window counts."""
    long_words = 5_000
    """Words that are certainly more than the window."""

    @pytest.fixture
    def verifier(self) -> Verifier:
        """The verifier under test."""
        raise NotImplementedError("override the fixture `verifier`")

    def test_it_has_a_name(self, verifier: Verifier) -> None:
        """The trace and an index name it, so there is a name."""
        assert verifier.name.strip() == verifier.name != ""

    def test_one_probability_each(self, verifier: Verifier) -> None:
        """A list of n passages gets n float32 probabilities in [0, 1]."""
        scores = verifier.score(QUERY, PASSAGES)
        assert scores.shape == (len(PASSAGES),)
        assert scores.dtype == np.float32
        assert ((scores >= 0) & (scores <= 1)).all()

    def test_one_raw_score_each(self, verifier: Verifier) -> None:
        """A list of n passages gets n finite float32 raw scores, and not all the same."""
        raw = verifier.raw_scores(QUERY, PASSAGES)
        assert raw.shape == (len(PASSAGES),)
        assert raw.dtype == np.float32
        assert np.isfinite(raw).all()
        assert np.ptp(raw) > 0

    def test_no_passages_no_scores(self, verifier: Verifier) -> None:
        """An empty list gets an empty array."""
        assert verifier.score(QUERY, []).shape == (0,)
        assert verifier.raw_scores(QUERY, []).shape == (0,)

    def test_scores_keep_the_order_given(self, verifier: Verifier) -> None:
        """Score i belongs to passage i, whatever order the passages are in."""
        forth, back = verifier.raw_scores(QUERY, PASSAGES), verifier.raw_scores(QUERY, PASSAGES[::-1])
        np.testing.assert_allclose(forth, back[::-1], atol=self.tolerance)

    def test_a_batch_is_no_other_than_one_by_one(self, verifier: Verifier) -> None:
        """A passage's score doesn't depend on its neighbours in the batch."""
        many = PASSAGES * 9
        single = [float(verifier.raw_scores(QUERY, [text])[0]) for text in PASSAGES] * 9
        np.testing.assert_allclose(verifier.raw_scores(QUERY, many), single, atol=self.tolerance)

    def test_the_same_pair_gets_the_same_score(self, verifier: Verifier) -> None:
        """Asked twice, it answers the same, bit for bit."""
        np.testing.assert_array_equal(verifier.score(QUERY, PASSAGES), verifier.score(QUERY, PASSAGES))

    def test_probabilities_are_the_calibrated_raw_scores(self, verifier: Verifier) -> None:
        """`score` is `calibration` applied to `raw_scores`, and never turns their order round."""
        raw, scores = verifier.raw_scores(QUERY, PASSAGES), verifier.score(QUERY, PASSAGES)
        np.testing.assert_allclose(scores, verifier.calibration.apply(raw), atol=1e-6)
        assert (np.diff(scores[np.argsort(raw)]) >= 0).all()

    def test_a_new_calibration_makes_a_new_verifier(self, verifier: Verifier) -> None:
        """`with_calibration` gives another verifier with the same raw scores, and leaves the old one as it was."""
        before = verifier.score(QUERY, PASSAGES)
        other = verifier.with_calibration(STEEP)
        assert other is not verifier
        assert type(other) is type(verifier)
        assert other.name == verifier.name
        assert other.calibration is STEEP
        np.testing.assert_allclose(other.score(QUERY, PASSAGES), STEEP.apply(verifier.raw_scores(QUERY, PASSAGES)))
        np.testing.assert_array_equal(verifier.score(QUERY, PASSAGES), before)

    def test_its_calibration_can_be_saved(self, verifier: Verifier) -> None:
        """The calibration goes through JSON unharmed."""
        again = calibration_from_dict(json.loads(json.dumps(verifier.calibration.to_dict())))
        raw = verifier.raw_scores(QUERY, PASSAGES)
        np.testing.assert_array_equal(again.apply(raw), verifier.calibration.apply(raw))

    def test_the_passage_that_answers_comes_first(self, verifier: Verifier) -> None:
        """A passage that answers scores above ones about something else."""
        if not self.tells_relevance:
            pytest.skip(f"{verifier.name} doesn't tell relevance: an untrained model, or a toy")
        scores = verifier.score(QUERY, PASSAGES)
        assert all(scores[RELEVANT] > scores[i] for i in (0, 2, 3))

    def test_a_query_without_room_for_a_passage_is_refused(self, verifier: Verifier) -> None:
        """A query is never cut: one that leaves no room is a QueryError that says so."""
        if not self.refuses_long_queries:
            pytest.skip(f"{verifier.name} declares no window")
        with pytest.raises(QueryError, match=r"\d+ tokens"):
            verifier.score(WORD * self.long_words, PASSAGES)

    def test_the_tail_of_a_long_passage_counts(self, verifier: Verifier) -> None:
        """A passage is never cut unsaid: another ending, far beyond the window, gives another score."""
        if not self.reads_long_passages:
            pytest.skip(f"{verifier.name} declares that it reads the beginning of a passage only")
        body = WORD * self.long_words
        raw = verifier.raw_scores(QUERY, [body + text * 3 for text in PASSAGES])
        assert np.ptp(raw) > 0

    def test_vectors_give_what_texts_give(self, verifier: Verifier) -> None:
        """A verifier that judges by embeddings gives the same from vectors as from their texts."""
        if not isinstance(verifier, VectorVerifier):
            pytest.skip(f"{verifier.name} reads texts, not vectors")
        embedder = verifier.embedder
        scores = verifier.score_vectors(embedder.embed_query(QUERY), embedder.embed_passages(PASSAGES))
        np.testing.assert_allclose(scores, verifier.score(QUERY, PASSAGES), atol=1e-6)
        assert verifier.score_vectors(embedder.embed_query(QUERY), embedder.embed_passages([])).shape == (0,)

    def test_eight_threads_get_what_one_gets(self, verifier: Verifier) -> None:
        """Shared between threads, it answers each as if it were alone."""
        queries = [f"{QUERY} {i}" for i in range(16)]
        alone = [verifier.raw_scores(query, PASSAGES) for query in queries]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda query: verifier.raw_scores(query, PASSAGES), queries))
        np.testing.assert_allclose(together, alone, atol=self.tolerance)
