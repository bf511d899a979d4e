"""Verifiers of your own: an object with `name` and `score`, a function, or a framework's reranker."""

import copy
import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from meve._vectors import validate_scores
from meve.calibration.probability_maps import IsotonicCalibration, PlattCalibration
from meve.components._component_check import check_component
from meve.errors import ConfigurationError, ModelError, PassageError, QueryError, wrap_errors
from meve.ports import Calibration, Verifier
from meve.types import FloatArray

Scale: TypeAlias = Literal["probabilities", "logits"] | Calibration
"""The scale of scores: in [0, 1], any number with 0 for even chances, or a calibration that was fitted to them."""

UNCALIBRATED = IsotonicCalibration(raw=(0.0, 1.0), probability=(0.0, 1.0))
"""Uses scores in [0, 1] as they are."""

_WRAPPERS = {
    "compress_documents": ("langchain_meve", "LangChainReranker"),
    "postprocess_nodes": ("llama_index_meve", "LlamaIndexReranker"),
}
"""The adapter for each kind of a framework's reranker, by the method that tells it; found by name, since the core
imports no wrapper."""


class ScoreVerifier:
    """Uses a function that scores passages for a query as a verifier.

    Args:
        scores: gets the query and a list of n passages, and returns n numbers that grow with relevance, in order.
        name: the verifier's name in traces and indexes.
        scale: the scale of the scores. `probabilities` and `logits` are uncalibrated: `Retriever.calibrate` fits them.

    Raises:
        ConfigurationError: an unknown scale, a blank name, or a coroutine function.

    >>> shout = ScoreVerifier(lambda query, passages: [float(query in text) for text in passages], name="contains")
    >>> shout.score("sky", ["the sky", "grass"]).tolist()
    [1.0, 0.0]
    """

    def __init__(self, scores: Callable[[str, list[str]], Any], *, name: str, scale: Scale = "probabilities") -> None:
        if isinstance(scale, str) and scale not in ("logits", "probabilities"):
            raise ConfigurationError(f"scale must be 'logits', 'probabilities' or a calibration, got {scale!r}")
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(f"name must be a non-empty string, got {name!r}: it identifies the verifier")
        if inspect.iscoroutinefunction(scores):
            raise ConfigurationError(f"verifier {name!r} must not be a coroutine function: give a blocking one")
        self.name = name
        self._scores = scores
        if isinstance(scale, str):
            scale = PlattCalibration() if scale == "logits" else UNCALIBRATED
        self.calibration: Calibration = scale

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the scores, shape (n,), in the order given.

        Raises:
            QueryError: `query` is no string.
            PassageError: `passages` is no sequence of strings.
            ModelError: the function failed, or returned a wrong number of scores or probabilities outside [0, 1].
        """
        if not isinstance(query, str):
            raise QueryError(f"query must be a string, got {type(query).__name__}")
        if isinstance(passages, str) or not all(isinstance(text, str) for text in passages):
            raise PassageError("passages must be a list of strings: put a single one in a list")
        if not len(passages):
            return np.zeros(0, dtype=np.float32)
        with wrap_errors(ModelError, f"scoring with {self.name}"):
            scores = self._scores(query, list(passages))
        raw = validate_scores(scores, len(passages), self.name)
        if self.calibration == UNCALIBRATED and (raw.min() < 0 or raw.max() > 1):
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


def adapt_verifier(given: Any) -> Verifier:  # noqa: ANN401 - anything that may be given
    """Return a verifier object as it is, or the adapter for what can be used as one.

    Args:
        given: a `meve.ports.Verifier`; an object with `name` and `score`; a function of a query and a list of passages;
            a LangChain compressor that sets `relevance_score`; or a LlamaIndex reranker. An object's `scale` or
            `calibration` tells how to read its scores, which are probabilities otherwise.

    Raises:
        ConfigurationError: anything else.
    """
    if not isinstance(given, type) and not all(hasattr(given, name) for name in _required()):
        for method, (package, adapter) in _WRAPPERS.items():
            if callable(getattr(given, method, None)):
                adapted: Verifier = getattr(import_module(package), adapter)(given)
                return adapted
        if isinstance(getattr(given, "name", None), str) and callable(getattr(given, "score", None)):
            scale: Any = getattr(given, "calibration", None) or getattr(given, "scale", "probabilities")
            return ScoreVerifier(getattr(given, "raw_scores", given.score), name=given.name, scale=scale)
        if callable(given) and not hasattr(given, "predict"):  # a model is callable too, with other arguments
            return ScoreVerifier(given, name=getattr(given, "__qualname__", type(given).__name__))
    complete: Verifier = check_component(given, "verifier", Verifier)
    return complete


def _required() -> list[str]:
    return [name for name in vars(Verifier) if not name.startswith("_")]
