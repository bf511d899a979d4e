"""Which candidates stand no chance of being verified? A fitted guess, from how they were found and their words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from meve._formulas import cosines, sigmoid
from meve.components.lexical.analyzers import content_words
from meve.errors import ConfigurationError
from meve.types import Candidate, FloatArray, Query

FEATURES = ("cosine", "nearest", "lexical", "coverage")


def signs(query: Query, candidates: Sequence[Candidate]) -> FloatArray:
    """What the guess goes by, shape (n, 4), each in [0, 1] but for the first, in [-1, 1].

    `cosine` of query and passage. `nearest`: that, beside the highest among them. `lexical`: its keyword score, as a
    share of the highest among them; 0 for one that words didn't bring. `coverage`: the share of the question's content
    words that stand in it.
    """
    near = np.zeros(len(candidates), dtype=np.float32)
    vectors = [c.vector for c in candidates if c.vector is not None]
    if query.vector is not None and vectors and len(vectors) == len(candidates):
        near = cosines(query.vector, np.array(vectors))
    words = np.array([max(c.scores.get("lexical", 0.0), 0.0) for c in candidates], dtype=np.float32)
    wanted = set(content_words(query.text))
    there = [len(wanted & set(content_words(c.passage.content))) for c in candidates]
    covered = np.array(there, dtype=np.float32) / max(len(wanted), 1)
    made = np.stack([near, _share(near), _share(words), covered], axis=1)
    return np.asarray(made, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPrior:
    """chance = sigmoid(weights · signs + intercept); of the embedder and the verifier that it was fitted with alone."""

    name: str
    embedder: str
    verifier: str
    weights: Mapping[str, float]
    """One for each of `FEATURES`."""
    intercept: float
    least: float
    """The chance in [0, 1] below which a candidate need not be scored."""
    fitted_on: str = ""
    lost: float = 0.0
    """The share of what the verifier would verify that lay below `least`, on questions kept out of the fit."""
    saved: float = 0.0
    """The share of all candidates that did."""

    def __post_init__(self) -> None:
        values = [*self.weights.values(), self.intercept]
        if set(self.weights) != set(FEATURES) or not np.isfinite(values).all() or not 0 <= self.least <= 1:
            raise ConfigurationError(
                f"the prior {self.name!r} needs a finite weight for each of {', '.join(FEATURES)}, and a least chance "
                f"from 0 to 1: got {sorted(self.weights)} and {self.least}; fit it again"
            )

    def chances(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """The probability that each would be verified, shape (n,), in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        weights = np.array([self.weights[name] for name in FEATURES])
        return sigmoid(signs(query, candidates) @ weights + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigurationError: values that are missing, unknown or can't be.
        """
        try:
            return cls(**data)
        except (TypeError, AttributeError) as cause:  # such as weights in a list
            raise ConfigurationError(f"a prior with {sorted(data)} can't be read: {cause}") from cause


def _share(values: FloatArray) -> FloatArray:
    top = float(values.max(initial=0.0))
    return np.asarray(values / top if top > 0 else np.zeros_like(values), dtype=np.float32)
