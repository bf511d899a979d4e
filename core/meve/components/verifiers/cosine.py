"""A verifier without a model of its own: the calibrated cosine between the embedder's vectors."""

import copy
import json
from collections.abc import Sequence
from importlib import resources
from typing import Self

import numpy as np

from meve._formulas import cosines
from meve.calibration.probability_maps import calibration_from_dict
from meve.components.embedders.onnx import MINILM_NAMES
from meve.errors import CalibrationError, ConfigurationError, VectorError, wrap_errors
from meve.ports import Calibration, Embedder
from meve.types import FloatArray


class CosineVerifier:
    """Scores by the cosine of query and passage vectors; raw scores are in [-1, 1].

    With vectors stored in an index, scoring costs almost nothing. It measures topical similarity, not whether the
    passage answers the query; a cross-encoder is more accurate.

    `meve.ports.Verifier` describes the arguments and errors of the methods.

    Args:
        embedder: makes the vectors.
        calibration: maps cosines of this embedder to probabilities; another embedder's doesn't apply.
    """

    name = "cosine"

    def __init__(self, embedder: Embedder, calibration: Calibration) -> None:
        self.embedder = embedder
        self.calibration = calibration

    @classmethod
    def for_minilm(cls, embedder: Embedder) -> Self:
        """Make a verifier with the calibration that ships for all-MiniLM-L6-v2.

        Raises:
            ConfigurationError: another embedder.
        """
        if embedder.name not in MINILM_NAMES:
            raise ConfigurationError(
                f"no cosine calibration ships for the embedder {embedder.name!r}: give a cross-encoder as verifier, or "
                "CosineVerifier(embedder, calibration), fitted by meve.calibration.fitting.fit_calibration"
            )
        return cls(embedder, load_shipped_calibration())

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return cosines in [-1, 1], shape (n,), in the order given."""
        vectors = self.embedder.embed_passages(passages)
        return _cosine(self.embedder.embed_query(query), vectors)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities in [0, 1], shape (n,), in the order given."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def score_vectors(self, query: FloatArray, passages: FloatArray) -> FloatArray:
        """Return calibrated probabilities, shape (n,), from a query vector (d,) and passage vectors (n, d).

        Raises:
            VectorError: the shapes don't match.
        """
        return self.calibration.apply(_cosine(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return a verifier with the same embedder and another calibration."""
        other = copy.copy(self)
        other.calibration = calibration
        return other


def load_shipped_calibration() -> Calibration:
    """Return the calibration for all-MiniLM-L6-v2.

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
            f"a query vector of shape {q.shape} and passage vectors of shape {p.shape} don't match: "
            "give (d,) and (n, d) of the same embedder"
        )
    return cosines(q, p)
