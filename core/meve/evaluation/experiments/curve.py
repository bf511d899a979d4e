"""Recall against tokens: not one point a system, but what it does at every threshold and budget."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from meve.errors import EvaluationError
from meve.evaluation._embedding_cache import Once
from meve.evaluation.measures.all_gold import complete
from meve.evaluation.measures.supporting_recall import recall
from meve.evaluation.outcome import Outcome
from meve.evaluation.results import Point
from meve.evaluation.run import Progress, ask
from meve.evaluation.systems import SYSTEMS, Workbench
from meve.evaluation.types import EvaluationSet, Handed, Parts, Question

THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BUDGETS = (128, 256, 512, 1024)
FILE = "curve.jsonl"

Setting = tuple[str, float | None, int]
"""System, threshold (None where it has none), and tokens."""

SETTINGS: tuple[Setting, ...] = (
    *((system, None, budget) for system in ("dense", "bm25", "hybrid") for budget in BUDGETS),
    *(("full", threshold, budget) for threshold in THRESHOLDS for budget in BUDGETS),
)


def curve(
    chosen: EvaluationSet, questions: Sequence[Question], parts: Parts, folder: Path, progress: Progress | None
) -> list[Point]:
    """The points of a set, over its questions with gold; kept in a file, from which a resumed run takes them."""
    file = folder / FILE
    kept = _kept(file)
    asked = [q for q in questions if q.gold and q.answerable]
    if not asked:
        return []
    mine = [p for p in kept if p.set == chosen.name and p.n == len(asked)]
    if mine and not any(p.raised for p in mine):
        return mine
    kept = [p for p in kept if p.set != chosen.name]
    sums = {setting: np.zeros(4) for setting in SETTINGS}
    remembering = replace(parts, embedder=Once(parts.embedder))
    passages = {p.id: p for p in chosen.passages}
    bench = None if chosen.closed else Workbench(chosen.passages, remembering)
    for done, question in enumerate(asked):
        if progress:
            progress(f"{chosen.name}: curve", done, len(asked))
        here = bench or Workbench([passages[i] for i in question.pool or ()], remembering)
        for setting, total in sums.items():
            total += _measured(question, ask(_system(here, setting), question))
    if progress:
        progress(f"{chosen.name}: curve", len(asked), len(asked))
    made = [
        Point(
            set=chosen.name,
            system=system,
            threshold=threshold,
            max_tokens=budget,
            recall=float(total[0] / len(asked)),
            complete=float(total[1] / len(asked)),
            tokens=float(total[2] / len(asked)),
            n=len(asked),
            raised=int(total[3]),
        )
        for (system, threshold, budget), total in sums.items()
    ]
    text = "".join(json.dumps(asdict(p)) + "\n" for p in (*kept, *made))
    fresh = file.with_name(f"{FILE}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
    return made


def _kept(file: Path) -> list[Point]:
    try:
        return [Point(**json.loads(line)) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    except (ValueError, TypeError) as cause:
        raise EvaluationError(f"{file} is damaged ({cause}): remove it, and it's made again") from cause


def _measured(question: Question, outcome: Outcome) -> tuple[float, ...]:
    """Recall, completeness, tokens, and whether it raised: then it has handed over nothing."""
    found = recall(question, outcome) or 0.0, complete(question, outcome) or 0.0
    return *found, float(outcome.handed.tokens), float(bool(outcome.error))


def _system(bench: Workbench, setting: Setting) -> Callable[[str], Handed]:
    name, threshold, budget = setting
    config = bench.parts.config.override(max_tokens=budget)
    if threshold is not None:
        config = config.override(threshold=threshold)
    return SYSTEMS[name](bench.with_config(config))
