"""How raw scores become probabilities: frozen maps, saved as plain data. Fitting them is `meve.calibration.fitting`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from meve._formulas import sigmoid
from meve.errors import CalibrationError
from meve.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PlattCalibration:
    """p = sigmoid(slope · raw + intercept). With 1 and 0, the plain sigmoid of a logit.

    Source: Platt, Probabilistic Outputs for Support Vector Machines (1999).

    >>> PlattCalibration(slope=2.0, intercept=-1.0).apply(np.array([0.5], dtype=np.float32)).tolist()
    [0.5]
    """

    slope: float = 1.0
    intercept: float = 0.0
    fitted_on: str = ""
    """Where the labelled pairs came from; empty for the plain sigmoid."""
    pairs: int = 0
    """How many labelled pairs it was fitted on."""
    error: float | None = None
    """Expected calibration error on pairs kept out of the fit, in [0, 1]."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.slope) and np.isfinite(self.intercept)) or self.slope <= 0:
            raise CalibrationError(
                f"a Platt calibration of slope {self.slope} and intercept {self.intercept} can't order anything: "
                "the slope must be positive and both finite; fit it again on pairs of both labels"
            )

    def apply(self, raw: FloatArray) -> FloatArray:
        """Raw scores (n,) as probabilities (n,)."""
        return sigmoid(self.slope * np.asarray(raw, dtype=np.float64) + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready."""
        return {"method": "platt", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsotonicCalibration:
    """Linear between fitted points, flat beyond them; free in shape, so it wants a thousand pairs or more.

    Source: Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass Probability Estimates (2002).
    """

    raw: tuple[float, ...]
    """Raw scores, rising."""
    probability: tuple[float, ...]
    """Their probabilities, never falling, in [0, 1]."""
    fitted_on: str = ""
    pairs: int = 0
    error: float | None = None

    def __post_init__(self) -> None:
        x, p = np.asarray(self.raw), np.asarray(self.probability)
        sound = x.size == p.size > 0 and np.isfinite(x).all() and np.isfinite(p).all()
        if not sound or (np.diff(x) <= 0).any() or (np.diff(p) < 0).any() or p.min() < 0 or p.max() > 1:
            raise CalibrationError(
                f"an isotonic calibration needs rising raw scores and probabilities in [0, 1] that never fall, "
                f"as many of the one as of the other: got {x.size} and {p.size}; fit it again"
            )

    def apply(self, raw: FloatArray) -> FloatArray:
        """Raw scores (n,) as probabilities (n,)."""
        return np.asarray(np.interp(np.asarray(raw, dtype=np.float64), self.raw, self.probability), dtype=np.float32)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, JSON-ready."""
        kept = {"fitted_on": self.fitted_on, "pairs": self.pairs, "error": self.error}
        return {"method": "isotonic", "raw": list(self.raw), "probability": list(self.probability), **kept}


def account(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a trace tells of a calibration's `to_dict`: method, numbers, and on what it was fitted.

    The points of an isotonic one are left out.
    """
    return {name: value for name, value in data.items() if isinstance(value, str | int | float)}


AnyCalibration: TypeAlias = PlattCalibration | IsotonicCalibration


def calibration_from_dict(data: Mapping[str, Any]) -> AnyCalibration:
    """Read what `to_dict` wrote.

    Raises:
        CalibrationError: another method, or values that are missing or can't be.
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
        raise CalibrationError(f"a {method} calibration with values {sorted(values)} can't be read: {cause}") from cause
    raise CalibrationError(f"calibration method is {method!r}: known are 'platt' and 'isotonic'")
