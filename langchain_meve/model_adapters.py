"""LangChain's embeddings and cross-encoders as parts of MeVe."""

import copy
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings

from meve._formulas import unit
from meve._vectors import checked_vectors
from meve.calibration.maps import IsotonicCalibration, PlattCalibration
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError, foreign
from meve.ports import Calibration
from meve.types import FloatArray, Similarity

_AS_THEY_ARE = IsotonicCalibration(raw=(0.0, 1.0), probability=(0.0, 1.0))


class LangChainEmbedder:
    """Any LangChain embeddings as an embedder; compared by cosine.

    Args:
        embeddings: what embeds. Whether it cuts long texts is its own affair.
        name: what to call it; None for its class.
    """

    similarity: Similarity = "cosine"

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        self.embeddings = embeddings
        self.name = name or type(embeddings).__name__
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """The length of a vector; asked for with a first embedding."""
        if not self._dimension:
            with foreign(ModelError, f"embedding with {self.name}"):
                self._dimension = len(self.embeddings.embed_query("dimension"))
        return self._dimension

    def embed_query(self, text: str) -> FloatArray:
        """One query, as a vector of length 1, shape (d,).

        Raises:
            QueryError: no text.
            ModelError: the embeddings failed.
        """
        if not isinstance(text, str):
            raise QueryError(f"a query is {type(text).__name__}: give text")
        with foreign(ModelError, f"embedding with {self.name}"):
            return unit(checked_vectors(self.embeddings.embed_query(text), (self.dimension,), self.name))

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Passages, as vectors of length 1, shape (n, d), in the order given.

        Raises:
            PassageError: no texts.
            ModelError: the embeddings failed.
        """
        _check_texts(texts)
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        with foreign(ModelError, f"embedding with {self.name}"):
            made = self.embeddings.embed_documents(list(texts))
            return unit(checked_vectors(made, (len(texts), self.dimension), self.name))


class LangChainVerifier:
    """A LangChain cross-encoder as a verifier.

    A cross-encoder's scores may be logits or probabilities, as its model pleases, and a threshold means nothing before
    that is known: so it has to be said.

    Args:
        cross_encoder: what scores; it cuts long passages as it pleases.
        scale: `logits`, of which the sigmoid is taken; `probabilities`, taken as they are; or a calibration that was
            fitted to it, as `meve.calibration.fitting.calibrate` does.
        name: what to call it; None for its class.

    Raises:
        ConfigurationError: another scale.
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
                raise ConfigurationError(f"scale is {scale!r}: choose logits, probabilities, or give a calibration")
            scale = PlattCalibration() if scale == "logits" else _AS_THEY_ARE
        self._calibration: Calibration = scale

    @property
    def calibration(self) -> Calibration:
        """How scores become probabilities."""
        return self._calibration

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """The cross-encoder's scores, shape (n,), in the order given.

        Raises:
            QueryError: a query that isn't text.
            PassageError: no texts.
            ModelError: it failed, gave another number of scores, or scores outside [0, 1] that were to be
                probabilities.
        """
        if not isinstance(query, str):
            raise QueryError(f"a query is {type(query).__name__}: give text")
        _check_texts(passages)
        if not len(passages):
            return np.zeros(0, dtype=np.float32)
        with foreign(ModelError, f"scoring with {self.name}"):
            scored = self.cross_encoder.score([(query, passage) for passage in passages])
        raw = checked_vectors(scored, (len(passages),), self.name)
        if self._calibration is _AS_THEY_ARE and (raw.min() < 0 or raw.max() > 1):
            raise ModelError(
                f"{self.name} gave scores from {raw.min():.3g} to {raw.max():.3g}, which are no probabilities: "
                "give scale='logits', or a calibration"
            )
        return raw

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Probabilities in [0, 1], shape (n,), in the order given.

        Raises:
            MeveError: as `raw_scores`.
        """
        return self._calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """The same cross-encoder under another calibration; this one keeps its own."""
        other = copy.copy(self)
        other._calibration = calibration
        return other


def _check_texts(texts: object) -> None:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(t, str) for t in texts):
        raise PassageError("passages must be a list of texts: put a single one in a list")
