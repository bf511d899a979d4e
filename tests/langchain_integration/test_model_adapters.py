"""LangChain's embeddings and cross-encoders as parts: the contracts, and scales that must be said."""

import numpy as np
import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from langchain_meve import LangChainEmbedder, LangChainVerifier, MeVeEmbeddings, MeVeRetriever
from meve.calibration.maps import PlattCalibration
from meve.errors import ConfigurationError, ModelError
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.verifier_contract import VerifierContract


class Overlap(BaseCrossEncoder):
    """Shares of the question's words: probabilities, of a kind."""

    def score(self, text_pairs):
        return [float(OverlapVerifier().raw_scores(query, [text])[0]) for query, text in text_pairs]


class Logits(Overlap):
    def score(self, text_pairs):
        return [8 * s - 4 for s in super().score(text_pairs)]


class TestEmbedder(EmbedderContract):
    tells_meaning = False
    refuses_long_queries = False

    @pytest.fixture
    def embedder(self):
        return LangChainEmbedder(MeVeEmbeddings(WordEmbedder()))


class TestVerifier(VerifierContract):
    tells_relevance = False
    refuses_long_queries = False

    @pytest.fixture
    def verifier(self):
        return LangChainVerifier(Overlap(), scale="probabilities")


class TestVerifierOfLogits(VerifierContract):
    tells_relevance = False
    refuses_long_queries = False

    @pytest.fixture
    def verifier(self):
        return LangChainVerifier(Logits(), scale="logits", name="logits")


def test_logits_that_were_called_probabilities_are_an_error():
    """Never a wrong threshold."""
    with pytest.raises(ModelError, match=r"Logits must return probabilities, got scores from -4 to 4.*scale='logits'"):
        LangChainVerifier(Logits(), scale="probabilities").score("blue sky", ["blue sky", "grass"])
    with pytest.raises(ConfigurationError, match="'percent'"):
        LangChainVerifier(Overlap(), scale="percent")
    fitted = PlattCalibration(slope=2.0)
    assert LangChainVerifier(Logits(), scale=fitted).calibration is fitted


def test_a_retriever_of_langchains_own_models():
    """Embeddings and cross-encoder that a user has already."""
    retriever = MeVeRetriever.from_texts(
        ["a blue sky", "grass"],
        embedder=LangChainEmbedder(MeVeEmbeddings(WordEmbedder()), name="mine"),
        verifier=LangChainVerifier(Overlap(), scale="probabilities"),
        tokens=WordCounter(),
    )
    assert [d.page_content for d in retriever.invoke("blue sky")] == ["a blue sky"]
    assert retriever.context("blue sky").trace.embedder == "mine"


def test_what_fails_is_named():
    class Broken(Overlap):
        def score(self, text_pairs):
            raise OSError("gone")

    with pytest.raises(ModelError, match="scoring with Broken failed: OSError: gone"):
        LangChainVerifier(Broken(), scale="logits").score("q", ["a"])

    class Short(Overlap):
        def score(self, text_pairs):
            return [0.5]

    with pytest.raises(ValueError, match=r"shape \(1,\), not \(2,\)"):
        LangChainVerifier(Short(), scale="logits").score("q", ["a", "b"])
    assert np.isfinite(LangChainVerifier(Short(), scale="logits").score("q", ["a"])).all()
