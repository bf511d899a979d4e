"""Logistic estimates over named features, fitted once and stored as JSON."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from meve._extras import require_imports
from meve.errors import ConfigurationError, ModelError, wrap_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticEstimate:
    """The base of logistic estimates, sigmoid(weights · features + intercept).

    Raises:
        ConfigurationError: not one finite weight for each feature, or a limit outside [0, 1].
    """

    kind: ClassVar[str]
    """The noun for the estimate in messages."""
    features: ClassVar[tuple[str, ...]]
    """The names of the features."""
    limit: ClassVar[str]
    """The name of the field that holds the probability from which on the estimate counts."""

    name: str
    verifier: str
    """The name of the verifier whose probabilities it was fitted on; it is valid for that verifier only."""
    weights: Mapping[str, float]
    """One weight for each of `features`."""
    intercept: float
    fitted_on: str = ""

    def __post_init__(self) -> None:
        values, limit = [*self.weights.values(), self.intercept], getattr(self, self.limit)
        if set(self.weights) != set(self.features) or not np.isfinite(values).all() or not 0 <= limit <= 1:
            raise ConfigurationError(
                f"the {self.kind} {self.name!r} needs a finite weight for each of {', '.join(self.features)}, and a "
                f"{self.limit} from 0 to 1, got {sorted(self.weights)} and {limit}; fit it again"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            ConfigurationError: values are missing, unknown or invalid.
        """
        try:
            return cls(**data)
        except (TypeError, AttributeError) as cause:  # for example weights as a list
            raise ConfigurationError(f"the {cls.kind} with {sorted(data)} can't be read: {cause}") from cause

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a JSON file of what `to_dict` returned.

        Raises:
            ModelError: the file can't be read.
            ConfigurationError: values are missing, unknown or invalid.
        """
        with wrap_errors(ModelError, f"reading {file}"):
            return cls.from_dict(json.loads(file.read_text("utf-8")))


def fit_logistic(
    features: Sequence[Mapping[str, float]], labels: Sequence[bool], *, rising: Collection[str] = ()
) -> tuple[dict[str, float], float]:
    """Return weights and intercept of a logistic regression that gives both labels equal weight.

    Args:
        features: the values of each example, by name; the same names in each.
        labels: the label of each example.
        rising: features whose weight is at least 0. While one of them has a negative weight, the feature with the
            lowest one gets 0, and the others are fitted again.

    Raises:
        MissingExtraError: scikit-learn isn't installed.
    """
    with require_imports("fitting a logistic estimate", {"sklearn": "models"}):
        from sklearn.linear_model import LogisticRegression
    x = np.array([list(each.values()) for each in features])
    mean, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    names = list(features[0])
    may_fall, weights, kept = (
        np.array([name not in rising for name in names]),
        np.zeros(len(names)),
        np.arange(len(names)),
    )
    while True:
        model = LogisticRegression(C=1.0, max_iter=1000, class_weight="balanced")
        model.fit(((x - mean) / spread)[:, kept], labels)
        falling = np.where(may_fall[kept], 0.0, model.coef_[0])
        if falling.min() >= 0:
            break
        kept = np.delete(kept, falling.argmin())
    weights[kept] = model.coef_[0] / spread[kept]
    return dict(zip(names, map(float, weights), strict=True)), float(model.intercept_[0] - weights @ mean)
