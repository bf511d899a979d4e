"""A verifier that needs no model of its own: a calibrated cosine between the embedder's vectors."""

import copy
import json
from collections.abc import Sequence
from importlib import resources
from typing import Self

import numpy as np

from meve._formulas import cosines
from meve.calibration.maps import calibration_from_dict
from meve.errors import CalibrationError, ConfigurationError, VectorError, wrap_errors
from meve.ports import Calibration, Embedder
from meve.types import FloatArray

MINILM_NAMES = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
"""Embedders that the shipped calibration was fitted for."""


class CosineVerifier:
    """Judges by the cosine of query and passage vectors; its raw scores lie in [-1, 1].

    It can use vectors that an index holds already, and then costs nothing. It sees what a passage is about, not whether
    it answers: a cross-encoder judges better.

    Args:
        embedder: makes the vectors.
        calibration: how a cosine of this embedder becomes a probability; another embedder's would be wrong.
    """

    name = "cosine"

    def __init__(self, embedder: Embedder, calibration: Calibration) -> None:
        self._embedder = embedder
        self._calibration = calibration

    @classmethod
    def minilm(cls, embedder: Embedder) -> Self:
        """With the calibration that ships for all-MiniLM-L6-v2.

        Raises:
            ConfigurationError: another embedder.
        """
        if embedder.name not in MINILM_NAMES:
            raise ConfigurationError(
                f"no calibration ships for the embedder {embedder.name!r}, and without one a cosine isn't a "
                "probability: give a cross-encoder's name or folder as verifier, or fit your own pairs with "
                "meve.calibration.fitting.fit_calibration and give CosineVerifier(embedder, calibration)"
            )
        return cls(embedder, shipped_calibration())

    @property
    def calibration(self) -> Calibration:
        """How a cosine becomes a probability."""
        return self._calibration

    @property
    def embedder(self) -> Embedder:
        """The embedder whose vectors it judges."""
        return self._embedder

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Cosines in [-1, 1], shape (n,), in the order given.

        Raises:
            QueryError: a query that isn't text, or is longer than the embedder's window.
            PassageError: something among the passages that isn't text.
            ModelError: the embedder failed.
        """
        vectors = self._embedder.embed_passages(passages)
        return _cosine(self._embedder.embed_query(query), vectors)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Calibrated probabilities in [0, 1], shape (n,), in the order given.

        Raises:
            QueryError: a query that isn't text, or is longer than the embedder's window.
            PassageError: something among the passages that isn't text.
            ModelError: the embedder failed.
        """
        return self._calibration.apply(self.raw_scores(query, passages))

    def score_vectors(self, query: FloatArray, passages: FloatArray) -> FloatArray:
        """Calibrated probabilities, shape (n,), from a query vector (d,) and passage vectors (n, d).

        Raises:
            VectorError: vectors of other shapes.
        """
        return self._calibration.apply(_cosine(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """The same embedder under another calibration; this one keeps its own."""
        other = copy.copy(self)
        other._calibration = calibration
        return other


def shipped_calibration() -> Calibration:
    """The calibration for all-MiniLM-L6-v2; how it was fitted stands in it.

    Raises:
        CalibrationError: the installed file can't be read.
    """
    file = resources.files("meve.components.verifiers") / "minilm_cosine.json"
    with wrap_errors(CalibrationError, f"reading the shipped calibration {file}"):
        return calibration_from_dict(json.loads(file.read_text(encoding="utf-8")))


def _cosine(query: FloatArray, passages: FloatArray) -> FloatArray:
    q, p = np.asarray(query, dtype=np.float32), np.asarray(passages, dtype=np.float32)
    if q.ndim != 1 or p.ndim != 2 or p.shape[1] != q.shape[0]:
        raise VectorError(
            f"a query vector of shape {q.shape} and passage vectors of shape {p.shape} don't go together: "
            "give (d,) and (n, d) of the same embedder"
        )
    return cosines(q, p)
