"""Calibration maps from raw scores to probabilities, saved as plain data; `meve.calibration.fitting` fits them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from meve._formulas import sigmoid
from meve.errors import CalibrationError
from meve.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PlattCalibration:
    """The map p = sigmoid(slope · raw + intercept). With 1 and 0, the plain sigmoid of a logit.

    Source: Platt, Probabilistic Outputs for Support Vector Machines (1999).

    >>> PlattCalibration(slope=2.0, intercept=-1.0).apply(np.array([0.5], dtype=np.float32)).tolist()
    [0.5]
    """

    slope: float = 1.0
    intercept: float = 0.0
    fitted_on: str = ""
    """The origin of the labelled pairs; empty for the plain sigmoid."""
    pairs: int = 0
    """The number of labelled pairs it was fitted on."""
    error: float | None = None
    """Expected calibration error on held-out pairs, in [0, 1]."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.slope) and np.isfinite(self.intercept)) or self.slope <= 0:
            raise CalibrationError(
                f"the slope must be positive and both slope and intercept finite, "
                f"got {self.slope} and {self.intercept}; fit the calibration again on pairs of both labels"
            )

    def apply(self, raw: FloatArray) -> FloatArray:
        """Map raw scores (n,) to probabilities (n,)."""
        return sigmoid(self.slope * np.asarray(raw, dtype=np.float64) + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready."""
        return {"method": "platt", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsotonicCalibration:
    """A piecewise linear map between fitted points, constant beyond them; needs a thousand pairs or more.

    Source: Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability Estimates (2002).
    """

    raw: tuple[float, ...]
    """Raw scores, strictly increasing."""
    probability: tuple[float, ...]
    """Their probabilities in [0, 1], never decreasing."""
    fitted_on: str = ""
    pairs: int = 0
    error: float | None = None

    def __post_init__(self) -> None:
        x, p = np.asarray(self.raw), np.asarray(self.probability)
        sound = x.size == p.size > 0 and np.isfinite(x).all() and np.isfinite(p).all()
        if not sound or (np.diff(x) <= 0).any() or (np.diff(p) < 0).any() or p.min() < 0 or p.max() > 1:
            raise CalibrationError(
                "raw must be strictly increasing, and probability as long, in [0, 1] and never decreasing, "
                f"got {x.size} and {p.size} values: fit the calibration again"
            )

    def apply(self, raw: FloatArray) -> FloatArray:
        """Map raw scores (n,) to probabilities (n,)."""
        return np.asarray(np.interp(np.asarray(raw, dtype=np.float64), self.raw, self.probability), dtype=np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready."""
        origin = {"fitted_on": self.fitted_on, "pairs": self.pairs, "error": self.error}
        return {"method": "isotonic", "raw": list(self.raw), "probability": list(self.probability), **origin}


def summarize_calibration(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace's summary of a calibration's `to_dict`: everything but isotonic points."""
    return {name: value for name, value in data.items() if isinstance(value, str | int | float)}


AnyCalibration: TypeAlias = PlattCalibration | IsotonicCalibration


def calibration_from_dict(data: Mapping[str, Any]) -> AnyCalibration:
    """Read what `to_dict` wrote.

    Raises:
        CalibrationError: an unknown method, or values that are missing or invalid.
    """
    values = dict(data)
    method = values.pop("method", None)
    try:
        if method == "platt":
            return PlattCalibration(**values)
        if method == "isotonic":
            values["raw"], values["probability"] = tuple(values["raw"]), tuple(values["probability"])
            return IsotonicCalibration(**values)
    except (TypeError, KeyError) as cause:
        raise CalibrationError(f"the {method} calibration of {sorted(values)} can't be read: {cause}") from cause
    raise CalibrationError(f"calibration method must be 'platt' or 'isotonic', got {method!r}")
