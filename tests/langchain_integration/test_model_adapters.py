"""LangChain embeddings and cross-encoders as MeVe components: contracts and score scales."""

import numpy as np
import pytest
from langchain_core.cross_encoders import BaseCrossEncoder

from langchain_meve import LangChainEmbedder, LangChainVerifier, MeVeEmbeddings, MeVeRetriever
from meve.calibration.probability_maps import PlattCalibration
from meve.errors import ConfigurationError, ModelError
from meve.testing.embedder_contract import EmbedderContract
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from meve.testing.verifier_contract import VerifierContract


class OverlapCrossEncoder(BaseCrossEncoder):
    """Scores the share of the question's words in the text."""

    def score(self, text_pairs):
        return [float(OverlapVerifier().raw_scores(query, [text])[0]) for query, text in text_pairs]


class Logits(OverlapCrossEncoder):
    def score(self, text_pairs):
        return [8 * s - 4 for s in super().score(text_pairs)]


class TestEmbedder(EmbedderContract):
    is_semantic = False
    rejects_long_queries = False

    @pytest.fixture
    def embedder(self):
        return LangChainEmbedder(MeVeEmbeddings(WordEmbedder()))


class TestVerifier(VerifierContract):
    detects_relevance = False
    rejects_long_queries = False

    @pytest.fixture
    def verifier(self):
        return LangChainVerifier(OverlapCrossEncoder(), scale="probabilities")


class TestVerifierOfLogits(VerifierContract):
    detects_relevance = False
    rejects_long_queries = False

    @pytest.fixture
    def verifier(self):
        return LangChainVerifier(Logits(), scale="logits", name="logits")


def test_logits_declared_as_probabilities_raise():
    with pytest.raises(ModelError, match=r"Logits must return probabilities, got scores from -4 to 4.*scale='logits'"):
        LangChainVerifier(Logits(), scale="probabilities").score("blue sky", ["blue sky", "grass"])
    with pytest.raises(ConfigurationError, match="'percent'"):
        LangChainVerifier(OverlapCrossEncoder(), scale="percent")
    fitted = PlattCalibration(slope=2.0)
    assert LangChainVerifier(Logits(), scale=fitted).calibration is fitted


def test_retriever_uses_langchain_models():
    retriever = MeVeRetriever.from_texts(
        ["a blue sky", "grass"],
        embedder=LangChainEmbedder(MeVeEmbeddings(WordEmbedder()), name="mine"),
        verifier=LangChainVerifier(OverlapCrossEncoder(), scale="probabilities"),
        tokens=WordCounter(),
    )
    assert [d.page_content for d in retriever.invoke("blue sky")] == ["a blue sky"]
    assert retriever.context("blue sky").trace.embedder == "mine"


def test_model_error_names_the_model():
    class Broken(OverlapCrossEncoder):
        def score(self, text_pairs):
            raise OSError("gone")

    with pytest.raises(ModelError, match="scoring with Broken failed: OSError: gone"):
        LangChainVerifier(Broken(), scale="logits").score("q", ["a"])

    class Short(OverlapCrossEncoder):
        def score(self, text_pairs):
            return [0.5]

    with pytest.raises(ModelError, match="'Short' must return one number for each of 2 passages, got 1 numbers"):
        LangChainVerifier(Short(), scale="logits").score("q", ["a", "b"])
    assert np.isfinite(LangChainVerifier(Short(), scale="logits").score("q", ["a"])).all()
