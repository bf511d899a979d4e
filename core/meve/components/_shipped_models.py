"""Loads the sufficiency estimator and the prior that ship with the bundled verifier and hold for it alone."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from meve.components.sufficiency import SufficiencyEstimator
from meve.components.verification_prior import FittedPrior
from meve.components.verifiers import SHIPPED
from meve.components.verifiers._shipped import shipped_folder
from meve.components.verifiers.cross_encoder import load_calibration_file
from meve.errors import ModelError, wrap_errors
from meve.ports import Embedder, Estimator, Prior, Verifier

SUFFICIENCY, PRIOR = "sufficiency.json", "prior.json"


def find_shipped_estimator(verifier: Verifier) -> Estimator | None:
    """Return the sufficiency estimator for the bundled verifier; None for another verifier or calibration.

    Raises:
        ModelError: the installed file can't be read.
    """
    return load_estimator(verifier.name, verifier.calibration.to_dict())


def load_estimator(name: str, calibration: Mapping[str, Any]) -> SufficiencyEstimator | None:
    """Return the sufficiency estimator for a verifier's name and calibration, without loading the verifier.

    Raises:
        ModelError: the installed file can't be read.
    """
    if not _as_shipped(name, calibration):
        return None
    return SufficiencyEstimator.from_dict(_read(SUFFICIENCY))


def find_shipped_prior(embedder: Embedder, verifier: Verifier) -> Prior | None:
    """Return the prior for the bundled embedder and verifier; None for others, or another calibration.

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
    calibration = load_calibration_file(shipped_folder())
    return calibration.to_dict() if calibration is not None else None


@cache
def _read(name: str) -> dict[str, Any]:
    file = shipped_folder() / name
    with wrap_errors(ModelError, f"reading {file}"):
        read: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return read
