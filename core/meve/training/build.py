"""From labelled pairs to a verifier that is ready to use: split, mine, train, calibrate, judge."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.ports import Verifier
from meve.training.mining import NEGATIVES, with_negatives
from meve.training.trainer import TrainingConfig, fine_tune
from meve.training.verdict import Verdict, judged, split
from meve.types import LabelledPair

VERDICT = "verdict.json"

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


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
    progress: Progress | None = None,
) -> Verdict:
    """Train a cross-encoder on pairs, calibrate it, and hold it against the verifier that it would replace.

    Queries are set aside for calibration and verdict before anything is learned. Run again with the same arguments
    after an interruption, and it goes on.

    Args:
        pairs: queries with passages that answer them, and with others where there are any.
        to: the folder for the model; `CrossEncoderVerifier.from_name(to)` reads it, calibration included.
        base: the folder or hub name of the model to begin with.
        replaces: the verifier to beat.
        config: how to learn.
        negatives: how many passages that don't answer a query should have; those missing are mined.
        held_out: the share of the queries that is set aside, in (0, 1).
        fitted_on: what the pairs are called, to be saved with the calibration.
        progress: told of each step.

    Raises:
        MissingExtraError: what training needs isn't installed.
        TrainingError: too few queries, pairs of one label only, or a folder with another training.
        ModelError: a model that can't be had, or that failed.
        CalibrationError: the trained model's scores don't rise with relevance.
    """
    folder = Path(to)
    config = config or TrainingConfig()
    parts = split(with_negatives(pairs, count=negatives, seed=config.seed), share=held_out, seed=config.seed)
    fine_tune(base, parts.train, folder, config, _told(progress, "training"))
    trained = CrossEncoderVerifier.from_name(str(folder), local_files_only=True)
    verdict = judged(
        trained, replaces, parts, fitted_on=fitted_on, seed=config.seed, progress=_told(progress, "judging")
    )
    calibration = {"verifier": str(folder), "calibration": verdict.calibration.to_dict()}
    (folder / "calibration.json").write_text(json.dumps(calibration, indent=2) + "\n", "utf-8")
    (folder / VERDICT).write_text(json.dumps(asdict(verdict), indent=2) + "\n", "utf-8")
    return verdict


def _told(progress: Progress | None, stage: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(stage, done, total)
