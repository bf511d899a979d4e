"""Loads the fitted models that ship with the bundled verifier and hold for it alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from meve.components.embedders.onnx import SHIPPED_MINILM
from meve.components.evidence import EvidenceModel
from meve.components.sufficiency import SufficiencyEstimator
from meve.components.verification_prior import FittedPrior
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.components.verifiers.cross_encoder import load_calibration_file

EVIDENCE, SUFFICIENCY, PRIOR = "evidence.json", "sufficiency.json", "prior.json"
WITH_MINILM = "minilm"
"""The folder of the models that were fitted to verdicts with the evidence of MiniLM's vectors."""

_read_evidence = cache(EvidenceModel.load)
_read_estimator, _read_prior = cache(SufficiencyEstimator.load), cache(FittedPrior.load)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModels:
    """The models that ship for one verifier and embedder, fitted to the verdicts of both; None where none ships."""

    evidence: EvidenceModel | None = None
    estimator: SufficiencyEstimator | None = None
    prior: FittedPrior | None = None


def find_fitted_models(verifier: str, calibration: Mapping[str, Any], embedder: str) -> FittedModels:
    """Return the models that ship for a verifier and an embedder; none for another verifier or calibration.

    Args:
        verifier: the verifier's name.
        calibration: what its `calibration.to_dict()` returns.
        embedder: the name of the embedder that made the passages' vectors.

    Raises:
        ModelError: an installed file can't be read.
    """
    if verifier != SHIPPED_VERIFIER or calibration != _read_calibration():
        return FittedModels()
    if embedder == SHIPPED_MINILM:
        folder = VERIFIER_FOLDER / WITH_MINILM
        return FittedModels(
            evidence=_read_evidence(folder / EVIDENCE),
            estimator=_read_estimator(folder / SUFFICIENCY),
            prior=_read_prior(folder / PRIOR),
        )
    prior = _read_prior(VERIFIER_FOLDER / PRIOR)
    return FittedModels(
        estimator=_read_estimator(VERIFIER_FOLDER / SUFFICIENCY), prior=prior if prior.embedder == embedder else None
    )


@cache
def _read_calibration() -> dict[str, Any] | None:
    calibration = load_calibration_file(VERIFIER_FOLDER)
    return None if calibration is None else calibration.to_dict()
