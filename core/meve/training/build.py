"""Builds a verifier from labelled pairs: split, mine negatives, train, calibrate, evaluate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.ports import Verifier
from meve.training.mining import NEGATIVES, add_negatives
from meve.training.trainer import TrainingConfig, fine_tune
from meve.training.verifier_comparison import Verdict, compare_verifiers, split_pairs
from meve.types import LabelledPair, StageProgress

VERDICT = "verdict.json"


def build_verifier(
    pairs: Sequence[LabelledPair],
    to: str | Path,
    *,
    base: str | Path,
    replaces: Verifier,
    config: TrainingConfig | None = None,
    negatives: int = NEGATIVES,
    held_out: float = 0.2,
    fitted_on: str = "",
    progress: StageProgress | None = None,
) -> Verdict:
    """Train a cross-encoder on pairs, calibrate it, and compare it with the verifier it would replace.

    Queries for calibration and evaluation are held out before training. An interrupted build is resumed when called
    again with the same arguments.

    Args:
        pairs: queries with relevant passages, and with irrelevant ones where there are any.
        to: the folder for the model; `CrossEncoderVerifier.from_name(to)` reads it, calibration included.
        base: the folder or hub name of the model to start from, or `meve-verifier-1`, as in `fine_tune`.
        replaces: the verifier to compare with.
        config: the training settings.
        negatives: how many irrelevant passages a query should have; missing ones are mined.
        held_out: the share of queries held out, in (0, 1).
        fitted_on: a name for the pairs, saved with the calibration.
        progress: called after each step.

    Raises:
        MissingExtraError: a package for training isn't installed.
        TrainingError: too few queries, pairs of one label only, or the folder holds another training.
        ModelError: a model can't be loaded, or failed.
        CalibrationError: the trained model's scores don't rise with relevance.
    """
    folder = Path(to)
    config = config or TrainingConfig()
    parts = split_pairs(add_negatives(pairs, count=negatives, seed=config.seed), share=held_out, seed=config.seed)
    fine_tune(base, parts.train, folder, config, _report_stage(progress, "training"))
    trained = CrossEncoderVerifier.from_name(str(folder), local_files_only=True)
    verdict = compare_verifiers(
        trained, replaces, parts, fitted_on=fitted_on, seed=config.seed, progress=_report_stage(progress, "judging")
    )
    calibration = {"verifier": str(folder), "calibration": verdict.calibration.to_dict()}
    (folder / "calibration.json").write_text(json.dumps(calibration, indent=2) + "\n", "utf-8")
    (folder / VERDICT).write_text(json.dumps(asdict(verdict), indent=2) + "\n", "utf-8")
    return verdict


def _report_stage(progress: StageProgress | None, stage: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(stage, done, total)
