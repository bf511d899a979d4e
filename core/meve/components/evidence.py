"""A fitted verdict from all evidence for a passage: cross-encoder, embeddings and keywords together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from meve.calibration.probability_maps import PlattCalibration, calibration_from_dict
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.ports import Calibration
from meve.types import FloatArray

INPUTS = ("logit", "cosine", "keywords")
"""`logit`: the verifier's raw score. `cosine`: of query and passage, in [-1, 1]. `keywords`: the keyword score divided
by the best of this query, in [0, 1]; 0 for a passage without a word of the query, NaN where it is unknown."""
FITS = (INPUTS, ("logit", "cosine"))
"""The sets of inputs that an evidence model of an embedder is fitted for: with the keyword score, and without."""
WORD_FITS = (("logit", "keywords"), ("logit",))
"""The same for a model of any embedder, which reads no cosine."""
INTERCEPT = "intercept"
PLAIN_SIGMOID = PlattCalibration()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceModel:
    """Logistic models of a passage's relevance, one for each set of inputs. Each grows with every input.

    Raises:
        ConfigurationError: not one finite weight of at least 0 for each input and a finite intercept, for each set.
    """

    name: str
    verifier: str
    """The name of the verifier whose logits it was fitted on; it is valid for that verifier only."""
    embedder: str | None
    """The name of the embedder whose cosines it was fitted on; None for any embedder, whose cosines it doesn't read."""
    fits: Mapping[str, Mapping[str, float]]
    """Weights and intercept by the inputs' names, joined by `+`."""
    fitted_on: str = ""
    calibration: Calibration = PLAIN_SIGMOID
    """The map from the weighted sum of the inputs to a probability; by default the plain sigmoid."""

    def __post_init__(self) -> None:
        for inputs in self._sets:
            weights = self.fits.get("+".join(inputs), {})
            if (
                set(weights) != {*inputs, INTERCEPT}
                or not np.isfinite(list(weights.values())).all()
                or min(weights[name] for name in inputs) < 0
            ):
                raise ConfigurationError(
                    f"the evidence model {self.name!r} needs for {'+'.join(inputs)} an intercept and weights of at "
                    f"least 0, all finite, got {dict(weights)}; fit it again"
                )

    def sums(self, inputs: Mapping[str, FloatArray]) -> FloatArray:
        """Return the weighted sums of the inputs, shape (n,); `calibration` maps them to probabilities.

        Args:
            inputs: `logit`, `keywords` and, unless the model is for any embedder, `cosine`, each of shape (n,). Where
                `keywords` is NaN, the fit without it counts.
        """
        unknown = np.isnan(inputs["keywords"])
        filled = {**inputs, "keywords": np.where(unknown, 0.0, inputs["keywords"])}
        complete, partial = (self._sum(filled, names) for names in self._sets)
        return np.asarray(np.where(unknown, partial, complete), dtype=np.float32)

    @property
    def _sets(self) -> tuple[Sequence[str], Sequence[str]]:
        return FITS if self.embedder else WORD_FITS

    def _sum(self, inputs: Mapping[str, FloatArray], names: Sequence[str]) -> FloatArray:
        weights = self.fits["+".join(names)]
        columns = np.stack([inputs[name] for name in names], axis=1)
        return np.asarray(columns @ np.array([weights[name] for name in names]) + weights[INTERCEPT])

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the same weights with another calibration of their sums."""
        return replace(self, calibration=calibration)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready."""
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        fits = {inputs: dict(weights) for inputs, weights in self.fits.items()}
        return {**data, "fits": fits, "calibration": self.calibration.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned.

        Raises:
            ConfigurationError: values are missing, unknown or invalid.
        """
        try:
            calibration = data.get("calibration")
            read = {} if calibration is None else {"calibration": calibration_from_dict(calibration)}
            return cls(**{**data, **read})
        except (TypeError, AttributeError) as cause:
            raise ConfigurationError(f"an evidence model with {sorted(data)} can't be read: {cause}") from cause

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a JSON file of what `to_dict` returned.

        Raises:
            ModelError: the file can't be read.
            ConfigurationError: values are missing, unknown or invalid.
        """
        with wrap_errors(ModelError, f"reading {file}"):
            return cls.from_dict(json.loads(file.read_text("utf-8")))
