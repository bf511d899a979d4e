"""Adapters that use LangChain's embeddings and cross-encoders as MeVe's embedder and verifier."""

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, Self

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel

from meve._formulas import normalize
from meve._vectors import validate_vectors
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError, wrap_errors
from meve.ports import Calibration
from meve.types import FloatArray, Similarity

IDENTITY_CALIBRATION = IsotonicCalibration(raw=(0.0, 1.0), probability=(0.0, 1.0))


class LangChainEmbedder:
    """Uses any LangChain embeddings as an embedder, with cosine similarity.

    Args:
        embeddings: LangChain embeddings, which may truncate long texts.
        name: the embedder's name in traces; None for the class name.
    """

    similarity: Similarity = "cosine"

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        self.embeddings = embeddings
        self.name = name or type(embeddings).__name__

    @cached_property
    def dimension(self) -> int:
        """The length of a vector, measured by a first embedding."""
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            return len(self.embeddings.embed_query("dimension"))

    def embed_query(self, text: str) -> FloatArray:
        """Return the unit vector of a query, shape (d,)."""
        if not isinstance(text, str):
            raise QueryError(f"query must be a string, got {type(text).__name__}")
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            return normalize(validate_vectors(self.embeddings.embed_query(text), (self.dimension,), self.name))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the unit vectors of passages, shape (n, d), in the order given."""
        _check_texts(texts)
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        with wrap_errors(ModelError, f"embedding with {self.name}"):
            vectors = self.embeddings.embed_documents(list(texts))
            return normalize(validate_vectors(vectors, (len(texts), self.dimension), self.name))


class LangChainVerifier:
    """Uses a LangChain cross-encoder as a verifier.

    Args:
        cross_encoder: scores query and passage; it may truncate long passages.
        scale: the scale of its scores, which depends on the model: `logits` (mapped by the sigmoid), `probabilities`
            (used as they are), or a calibration, as `meve.calibration.fitting.calibrate` fits one.
        name: the verifier's name in traces; None for the class name.

    Raises:
        ConfigurationError: an unknown scale.
    """

    def __init__(
        self,
        cross_encoder: BaseCrossEncoder,
        *,
        scale: Literal["logits", "probabilities"] | Calibration,
        name: str | None = None,
    ) -> None:
        self.cross_encoder = cross_encoder
        self.name = name or type(cross_encoder).__name__
        if isinstance(scale, str):
            if scale not in ("logits", "probabilities"):
                raise ConfigurationError(f"scale must be 'logits', 'probabilities' or a calibration, got {scale!r}")
            scale = PlattCalibration() if scale == "logits" else IDENTITY_CALIBRATION
        self.calibration: Calibration = scale

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the cross-encoder's scores, shape (n,), in the order given.

        Raises:
            QueryError: `query` is no string.
            PassageError: `passages` is no sequence of strings.
            ModelError: the cross-encoder failed, or returned a wrong number of scores or probabilities outside [0, 1].
        """
        if not isinstance(query, str):
            raise QueryError(f"query must be a string, got {type(query).__name__}")
        _check_texts(passages)
        if not len(passages):
            return np.zeros(0, dtype=np.float32)
        with wrap_errors(ModelError, f"scoring with {self.name}"):
            scores = self.cross_encoder.score([(query, passage) for passage in passages])
        raw = validate_vectors(scores, (len(passages),), self.name)
        if self.calibration is IDENTITY_CALIBRATION and (raw.min() < 0 or raw.max() > 1):
            raise ModelError(
                f"{self.name} must return probabilities, got scores from {raw.min():.3g} to {raw.max():.3g}: "
                "set scale='logits', or pass a calibration"
            )
        return raw

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return probabilities in [0, 1], shape (n,), in the order given; raises as `raw_scores`."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return a copy with another calibration; this verifier keeps its own."""
        verifier = copy.copy(self)
        verifier.calibration = calibration
        return verifier


def complete_with(model: BaseChatModel) -> Callable[[str], str]:
    """Return a function that sends a prompt to a chat model and returns its text, as `LlmExtractor` takes it.

    Raises:
        ConfigurationError: it is no chat model.
    """
    if not isinstance(model, BaseChatModel):
        raise ConfigurationError(f"model must be a LangChain chat model, got {model!r:.60}")
    return lambda prompt: str(model.invoke(prompt).text)


def _check_texts(texts: object) -> None:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(t, str) for t in texts):
        raise PassageError("passages must be a list of strings: put a single one in a list")
