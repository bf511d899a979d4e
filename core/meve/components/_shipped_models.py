"""Loads the fitted models that ship with the bundled verifier and hold for it alone."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from meve.components.evidence import EvidenceModel
from meve.components.sufficiency import SufficiencyEstimator
from meve.components.verification_prior import FittedPrior
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.components.verifiers.cross_encoder import load_calibration_file
from meve.ports import Embedder, Estimator, Prior, Verifier

EVIDENCE, SUFFICIENCY, PRIOR = "evidence.json", "sufficiency.json", "prior.json"

_read_evidence = cache(EvidenceModel.load)
_read_estimator, _read_prior = cache(SufficiencyEstimator.load), cache(FittedPrior.load)


def find_shipped_evidence(verifier: Verifier) -> EvidenceModel | None:
    """Return the evidence model for the bundled verifier; None for another verifier or calibration.

    Raises:
        ModelError: the installed file can't be read.
    """
    as_shipped = _is_as_shipped(verifier.name, verifier.calibration.to_dict())
    return _read_evidence(VERIFIER_FOLDER / EVIDENCE) if as_shipped else None


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
    return _read_estimator(VERIFIER_FOLDER / SUFFICIENCY) if _is_as_shipped(name, calibration) else None


def find_shipped_prior(embedder: Embedder, verifier: Verifier) -> Prior | None:
    """Return the prior for the bundled embedder and verifier; None for others, or another calibration.

    Raises:
        ModelError: the installed file can't be read.
    """
    if not _is_as_shipped(verifier.name, verifier.calibration.to_dict()):
        return None
    prior = _read_prior(VERIFIER_FOLDER / PRIOR)
    return prior if prior.embedder == embedder.name else None


def _is_as_shipped(name: str, calibration: Mapping[str, Any]) -> bool:
    return name == SHIPPED_VERIFIER and calibration == _read_calibration()


@cache
def _read_calibration() -> dict[str, Any] | None:
    calibration = load_calibration_file(VERIFIER_FOLDER)
    return None if calibration is None else calibration.to_dict()
