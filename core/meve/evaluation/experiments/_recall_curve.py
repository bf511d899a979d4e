"""Recall against tokens: each system at every threshold and budget."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from meve.errors import EvaluationError
from meve.evaluation._journal import write_atomically
from meve.evaluation._model_caches import QueryCachingEmbedder
from meve.evaluation._set_runner import ask_system
from meve.evaluation.measures.gold_passages import has_all_gold, passage_recall
from meve.evaluation.results import CurvePoint
from meve.evaluation.systems import SYSTEMS, IndexedPassages
from meve.evaluation.types import (
    EvaluationSet,
    Question,
    QuestionOutcome,
    SharedComponents,
    SystemOutput,
    parse_dataclass,
)
from meve.types import StageProgress

THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BUDGETS = (128, 256, 512, 1024)
FILE = "curve.jsonl"

Setting = tuple[str, float | None, int]
"""System, threshold (None where it has none), and tokens."""

SETTINGS: tuple[Setting, ...] = (
    *((system, None, budget) for system in ("dense", "bm25", "hybrid") for budget in BUDGETS),
    *(("full", threshold, budget) for threshold in THRESHOLDS for budget in BUDGETS),
)


def measure_curve(
    dataset: EvaluationSet,
    questions: Sequence[Question],
    components: SharedComponents,
    folder: Path,
    progress: StageProgress = lambda *_: None,
) -> list[CurvePoint]:
    """Return the points of a set, over its questions with gold; points in the folder's file are reused."""
    file = folder / FILE
    saved = _load_points(file)
    with_gold = [q for q in questions if q.gold and q.answerable]
    if not with_gold:
        return []
    reusable = [p for p in saved if p.set == dataset.name and p.n == len(with_gold)]
    if reusable and not any(p.raised for p in reusable):
        return reusable
    sums = {setting: np.zeros(4) for setting in SETTINGS}
    components = replace(components, embedder=QueryCachingEmbedder(components.embedder))
    passages = {p.id: p for p in dataset.passages}
    whole_set = None if dataset.has_pools else IndexedPassages(dataset.passages, components)
    for done, question in enumerate(with_gold):
        progress(f"{dataset.name}: curve", done, len(with_gold))
        indexed = whole_set or IndexedPassages([passages[i] for i in question.pool or ()], components)
        for setting, total in sums.items():
            total += _values(question, ask_system(_system(indexed, setting), question))
    progress(f"{dataset.name}: curve", len(with_gold), len(with_gold))
    points = [
        CurvePoint(
            set=dataset.name,
            system=system,
            threshold=threshold,
            max_tokens=budget,
            recall=float(total[0] / len(with_gold)),
            complete=float(total[1] / len(with_gold)),
            tokens=float(total[2] / len(with_gold)),
            n=len(with_gold),
            raised=int(total[3]),
        )
        for (system, threshold, budget), total in sums.items()
    ]
    others = [p for p in saved if p.set != dataset.name]
    write_atomically(file, "".join(json.dumps(asdict(p)) + "\n" for p in (*others, *points)))
    return points


def _load_points(file: Path) -> list[CurvePoint]:
    try:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return [parse_dataclass(CurvePoint, json.loads(line)) for line in lines]
    except ValueError as cause:
        raise EvaluationError(f"{file} is damaged ({cause}): remove it to measure the curve again") from cause


def _values(question: Question, outcome: QuestionOutcome) -> tuple[float, ...]:
    """Return recall, completeness, tokens, and whether the system raised."""
    tokens, raised = float(outcome.output.tokens), float(bool(outcome.error))
    return passage_recall(question, outcome), has_all_gold(question, outcome), tokens, raised


def _system(indexed: IndexedPassages, setting: Setting) -> Callable[[str], SystemOutput]:
    name, threshold, budget = setting
    config = indexed.components.config.override(max_tokens=budget)
    if threshold is not None:
        config = config.override(threshold=threshold)
    return SYSTEMS[name](indexed.with_config(config))
