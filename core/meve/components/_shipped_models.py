"""What was fitted with the verifier that ships, and holds for it alone, under the calibration that it ships with."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from meve.components.prior import FittedPrior
from meve.components.sufficiency import SufficiencyEstimator
from meve.components.verifiers import SHIPPED
from meve.components.verifiers._shipped import shipped_folder
from meve.components.verifiers.cross_encoder import load_calibration_file
from meve.errors import ModelError, wrap_errors
from meve.ports import Embedder, Estimator, Prior, Verifier

SUFFICIENCY, PRIOR = "sufficiency.json", "prior.json"


def find_shipped_estimator(verifier: Verifier) -> Estimator | None:
    """The estimate of sufficiency for the verifier that ships; None for another, or other probabilities.

    Raises:
        ModelError: the installed file can't be read.
    """
    return load_estimator(verifier.name, verifier.calibration.to_dict())


def load_estimator(name: str, calibration: Mapping[str, Any]) -> SufficiencyEstimator | None:
    """The same for a verifier of that name and calibration, which needn't be loaded.

    Raises:
        ModelError: the installed file can't be read.
    """
    if not _as_shipped(name, calibration):
        return None
    return SufficiencyEstimator.from_dict(_read(SUFFICIENCY))


def find_shipped_prior(embedder: Embedder, verifier: Verifier) -> Prior | None:
    """The prior for the embedder and the verifier that ship; None for others, or other probabilities.

    Raises:
        ModelError: the installed file can't be read.
    """
    if not _as_shipped(verifier.name, verifier.calibration.to_dict()):
        return None
    prior = FittedPrior.from_dict(_read(PRIOR))
    return prior if prior.embedder == embedder.name else None


def _as_shipped(name: str, calibration: Mapping[str, Any]) -> bool:
    return name == SHIPPED and calibration == _calibration()


@cache
def _calibration() -> dict[str, Any] | None:
    found = load_calibration_file(shipped_folder())
    return found.to_dict() if found is not None else None


@cache
def _read(name: str) -> dict[str, Any]:
    file = shipped_folder() / name
    with wrap_errors(ModelError, f"reading {file}"):
        read: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return read
