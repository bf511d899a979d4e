"""Measures verifiers on held-out examples: AUC and calibration error per set, with intervals.

    python -m recipes.verifier.test --work WORK --verifier WORK/model --verifier cosine

AUC is over all pairs of a set: gold passages, and for each question the eight hardest others (its own distractors
first, then the best by BM25). Intervals resample questions with all their pairs.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from meve._formulas import expected_calibration_error
from meve.calibration.fitting import raw_scores
from meve.components.verifiers import load_verifier
from meve.evaluation.statistics import Interval, bootstrap_interval
from meve.ports import Verifier
from meve.training.verifier_comparison import make_auc_statistic, rows_by_query
from recipes.verifier.examples import Example, pair_of
from recipes.verifier.splits import SEED


def main() -> None:
    """Score the examples and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--verifier", action="append", required=True)
    parser.add_argument("--part", default="test")
    parser.add_argument("--questions", type=int, default=10_000, help="of each set and kind, at most")
    parser.add_argument("--only", default="", help="names of sets, with commas")
    parser.add_argument("--to", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    examples = Example.read(given.work / f"{given.part}.jsonl")
    if given.only:
        examples = [e for e in examples if e.set in given.only.split(",")]
    result: dict[str, dict[str, dict[str, object]]] = {}
    for name in given.verifier:
        verifier = load_verifier(name)
        for key in sorted({(e.set, e.kind) for e in examples}):
            of_set = [e for e in examples if (e.set, e.kind) == key]
            chosen = set(list(dict.fromkeys(map(question_of, of_set)))[: given.questions])
            row = evaluate(verifier, [e for e in of_set if question_of(e) in chosen])
            if row is not None:
                result.setdefault(" · ".join(key), {})[name] = row
                print(f"{name:20} {' · '.join(key):32} {format_row(row)}", flush=True)
    if given.to:
        given.to.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def question_of(example: Example) -> str:
    """Return the question, without the evidence of a second hop."""
    return example.query.partition("\n")[0] if example.kind == "second hop" else example.query


def evaluate(verifier: Verifier, examples: Sequence[Example]) -> dict[str, object] | None:
    """Return AUC, calibration error and pairs per second; None for examples of one label."""
    relevant = np.array([e.relevant for e in examples])
    if relevant.all() or not relevant.any():
        return None
    pairs = [pair_of(e) for e in examples]
    started = time.monotonic()
    raw = raw_scores(verifier, pairs)
    seconds = time.monotonic() - started
    groups = rows_by_query([replace(pair, query=question_of(e)) for pair, e in zip(pairs, examples, strict=True)])
    auc = bootstrap_interval(len(groups), make_auc_statistic(raw, relevant, groups), seed=SEED)
    error = expected_calibration_error(verifier.calibration.apply(raw), relevant)
    return {
        "auc": asdict(auc) if auc else None,
        "error": error,
        "pairs": len(examples),
        "rate": len(examples) / seconds,
    }


def format_row(row: dict[str, object]) -> str:
    """Format the figures as one line."""
    auc = Interval(**row["auc"])  # type: ignore[arg-type]
    count = f"{row['pairs']:,} pairs, {row['rate']:.0f}/s"
    return f"AUC {auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]  error {row['error']:.3f}  {count}"


if __name__ == "__main__":
    main()
