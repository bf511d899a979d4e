"""Verifiers of one's own: trained on labelled pairs, resumable, and held against what they replace."""

from meve.training.build import build_verifier
from meve.training.trainer import TrainingConfig, fine_tune
from meve.training.verdict import Verdict

__all__ = ["TrainingConfig", "Verdict", "build_verifier", "fine_tune"]
