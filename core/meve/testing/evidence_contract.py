"""The contracts of evidence models and priors. Inherit one, override its fixture, and run pytest.

class TestMine(EvidenceContract):
    @pytest.fixture
    def evidence(self):
        return MyEvidence()
"""

from dataclasses import replace

import numpy as np

from meve._extras import require_imports
from meve.calibration.probability_maps import PlattCalibration
from meve.ports import EvidenceCombiner, Prior
from meve.testing import NEEDS, SUITE
from meve.types import Candidate, FloatArray, Passage, Query

with require_imports(SUITE, NEEDS):
    import pytest

STEEP = PlattCalibration(slope=7.0, intercept=-3.0)
UNKNOWN = np.full(5, np.nan, dtype=np.float32)
LOGITS = np.linspace(-6, 6, 5, dtype=np.float32)
COSINES = np.linspace(-1, 1, 5, dtype=np.float32)
SHARES = np.linspace(0, 1, 5, dtype=np.float32)
TEXTS = ("The Moon orbits the Earth.", "Grass is green.", "The Sun is a star.")
QUERY = "What orbits the Earth?"


def middle() -> dict[str, FloatArray]:
    """Return the same inputs five times."""
    return {name: np.full(5, value, np.float32) for name, value in (("logit", 0), ("cosine", 0.5), ("keywords", 0.5))}


class EvidenceContract:
    """The rules of `meve.ports.EvidenceCombiner`."""

    @pytest.fixture
    def evidence(self) -> EvidenceCombiner:
        """Return the evidence model under test."""
        raise NotImplementedError("override the fixture `evidence`")

    def test_names_are_not_blank(self, evidence: EvidenceCombiner) -> None:
        assert evidence.name.strip()
        assert evidence.verifier.strip()
        assert evidence.embedder is None or evidence.embedder.strip()

    @pytest.mark.parametrize("keywords", [SHARES, UNKNOWN], ids=["keywords", "no keywords"])
    @pytest.mark.parametrize(("name", "rising"), [("logit", LOGITS), ("cosine", COSINES), ("keywords", SHARES)])
    def test_probability_never_falls_as_an_input_rises(
        self, evidence: EvidenceCombiner, name: str, rising: FloatArray, keywords: FloatArray
    ) -> None:
        inputs = {**middle(), "keywords": np.full(5, keywords[2], np.float32), name: rising}
        probabilities = evidence.calibration.apply(evidence.sums(inputs))
        assert probabilities.shape == (5,)
        assert probabilities.dtype == np.float32
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        assert (np.diff(probabilities) >= 0).all()

    def test_unknown_keywords_of_one_passage_leave_others_alone(self, evidence: EvidenceCombiner) -> None:
        inputs = {"logit": LOGITS, "cosine": COSINES, "keywords": SHARES}
        mixed = {**inputs, "keywords": np.where(np.arange(5) == 1, np.nan, SHARES).astype(np.float32)}
        rows = [0, 2, 3, 4]
        np.testing.assert_allclose(evidence.sums(mixed)[rows], evidence.sums(inputs)[rows], atol=1e-5)
        assert np.isfinite(evidence.sums(mixed)).all()

    def test_no_passages_get_no_sums(self, evidence: EvidenceCombiner) -> None:
        none = {name: np.zeros(0, np.float32) for name in ("logit", "cosine", "keywords")}
        assert evidence.sums(none).shape == (0,)

    def test_with_calibration_maps_the_same_sums(self, evidence: EvidenceCombiner) -> None:
        inputs = {"logit": LOGITS, "cosine": COSINES, "keywords": SHARES}
        own, sums = evidence.calibration, evidence.sums(inputs)
        other = evidence.with_calibration(STEEP)
        assert other is not evidence
        assert (type(other), other.name, other.calibration) == (type(evidence), evidence.name, STEEP)
        np.testing.assert_array_equal(other.sums(inputs), sums)
        assert evidence.calibration == own


class PriorContract:
    """The rules of `meve.ports.Prior`."""

    dimension = 4
    """The dimension of the vectors of query and candidates."""

    @pytest.fixture
    def prior(self) -> Prior:
        """Return the prior under test."""
        raise NotImplementedError("override the fixture `prior`")

    @pytest.fixture
    def query(self) -> Query:
        """Return a query with a vector."""
        return Query(text=QUERY, vector=np.eye(self.dimension, dtype=np.float32)[0])

    @pytest.fixture
    def candidates(self) -> list[Candidate]:
        """Return candidates with vectors and keyword shares, from the likeliest to the least likely."""
        vectors = np.eye(self.dimension, dtype=np.float32)
        rows = zip(TEXTS, (vectors[0], vectors[0] + vectors[1], vectors[1]), (1.0, 0.5, 0.0), strict=True)
        return [
            Candidate(passage=Passage(id=text, text=text), origin="dense", vector=vector, keyword_share=share)
            for text, vector, share in rows
        ]

    def test_name_is_not_blank_and_limit_is_a_probability(self, prior: Prior) -> None:
        assert prior.name.strip()
        assert 0 <= prior.least <= 1

    def test_nearer_candidates_get_higher_chances(
        self, prior: Prior, query: Query, candidates: list[Candidate]
    ) -> None:
        chances = prior.chances(query, candidates)
        assert chances.shape == (3,)
        assert chances.dtype == np.float32
        assert ((chances >= 0) & (chances <= 1)).all()
        assert (np.diff(chances) < 0).all()
        np.testing.assert_allclose(prior.chances(query, candidates[::-1]), chances[::-1], atol=1e-6)

    def test_no_candidates_get_no_chances(self, prior: Prior, query: Query) -> None:
        assert prior.chances(query, []).shape == (0,)

    def test_nothing_is_unlikely_without_vectors(self, prior: Prior, query: Query, candidates: list[Candidate]) -> None:
        bare = [replace(c, vector=None) for c in candidates]
        assert (prior.chances(query, bare) == 1).all()
        assert (prior.chances(replace(query, vector=None), candidates) == 1).all()
