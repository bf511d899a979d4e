"""Loads the fitted models that ship with the bundled verifier and hold for it alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from meve.components.embedders.onnx import MINILM_NAMES
from meve.components.evidence import EvidenceModel
from meve.components.sufficiency import LogitEstimator, RecalibratedEstimator, SufficiencyEstimator
from meve.components.verification_prior import FittedPrior
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.components.verifiers.cross_encoder import load_calibration_file
from meve.ports import Calibration, EvidenceCombiner

EVIDENCE, SUFFICIENCY, PRIOR = "evidence.json", "sufficiency.json", "prior.json"
WITH_MINILM = "minilm"
"""The folder of the models that were fitted to verdicts with the evidence of MiniLM's vectors."""
WITH_WORDS = "words"
"""The folder of those for any other embedder, fitted to verdicts with keyword scores and without cosines."""

_read_evidence = cache(EvidenceModel.load)
_read_estimator, _read_prior = cache(SufficiencyEstimator.load), cache(FittedPrior.load)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModels:
    """The models that ship for one verifier and embedder; None where none ships."""

    evidence: EvidenceModel | None = None
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
    own = _read_own_calibration()
    if verifier != SHIPPED_VERIFIER or own is None or calibration != own.to_dict():
        return FittedModels()
    is_minilm = embedder in MINILM_NAMES
    folder = VERIFIER_FOLDER / (WITH_MINILM if is_minilm else WITH_WORDS)
    evidence, prior = _read_evidence(folder / EVIDENCE), _read_prior(folder / PRIOR)
    if is_minilm:
        return FittedModels(evidence=replace(evidence, embedder=embedder), prior=replace(prior, embedder=embedder))
    return FittedModels(evidence=evidence, prior=prior if prior.embedder == embedder else None)


def find_estimator(
    verifier: str, calibration: Calibration, embedder: str, evidence: EvidenceCombiner | None = None
) -> SufficiencyEstimator | RecalibratedEstimator | LogitEstimator | None:
    """Return the sufficiency estimate that ships for a verifier and an embedder; None for another verifier.

    Under another calibration it reads the probabilities as they were when it was fitted.

    Args:
        verifier: the verifier's name.
        calibration: the verifier's calibration.
        embedder: the name of the embedder that made the passages' vectors.
        evidence: the evidence model in use; None for the one that ships for both.

    Raises:
        ModelError: an installed file can't be read.
    """
    own = _read_own_calibration()
    if verifier != SHIPPED_VERIFIER or own is None:
        return None
    is_own = calibration.to_dict() == own.to_dict()
    alone = _read_estimator(VERIFIER_FOLDER / SUFFICIENCY)
    if evidence is None and not is_own:  # the verifier judges alone
        return RecalibratedEstimator(alone, given=calibration, fitted=own)
    if embedder not in MINILM_NAMES or (evidence is not None and evidence.embedder is None):
        return LogitEstimator(alone, fitted=own)
    folder = VERIFIER_FOLDER / WITH_MINILM
    shipped, estimator = _read_evidence(folder / EVIDENCE), _read_estimator(folder / SUFFICIENCY)
    if evidence is None:
        return estimator
    if evidence.name != shipped.name:
        return None
    return RecalibratedEstimator(estimator, given=evidence.calibration, fitted=shipped.calibration)


@cache
def _read_own_calibration() -> Calibration | None:
    return load_calibration_file(VERIFIER_FOLDER)
