"""Measures verdicts on near misses, and retrieval from manuals: see README.md beside this file."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from meve import Passage, Retriever
from meve.components.verifiers import load_verifier
from meve.ingest import ingest

HERE = Path(__file__).parent
THRESHOLD = 0.5


def main() -> None:
    """Measure what is asked for, each half apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["near-misses", "manuals"])
    parser.add_argument("--manuals", type=Path, help="the folder of the manuals")
    parser.add_argument("--embedder")
    parser.add_argument("--verifier")
    given = parser.parse_args()
    if given.what == "near-misses":
        measure_near_misses(given.verifier)
    else:
        measure_manuals(given.manuals, given.embedder, given.verifier)


def measure_near_misses(name: str | None) -> None:
    """Print the area under the curve, and which shares of near misses and answers reach the threshold."""
    verifier, rows = load_verifier(name), read_rows("near_misses.jsonl")
    scores = np.array([verifier.score(row["question"], [row["passage"]])[0] for row in rows])
    labels = np.array([row["label"] == 1 for row in rows])
    for half in ("dev", "test"):
        chosen = np.array([row["half"] == half for row in rows])
        s, y = scores[chosen], labels[chosen]
        print(f"{half}: AUC {roc_auc_score(y, s):.3f}, near misses verified {(s[~y] >= THRESHOLD).mean():.2f}, "
              f"answers verified {(s[y] >= THRESHOLD).mean():.2f}")  # fmt: skip


def measure_manuals(folder: Path, embedder: str | None, verifier: str | None) -> None:
    """Print how many questions have a gold passage in their context, and how many contexts are called sufficient."""
    retriever = Retriever.empty(embedder=embedder, verifier=verifier)
    ingest(folder, retriever)
    print(f"{len(retriever.passages()):,} passages")
    rows = read_rows("questions.jsonl")
    results = [(row, retriever.retrieve(row["question"])) for row in rows]
    for name, chosen in {
        "dev": [r for r in results if r[0]["half"] == "dev" and "definition" not in r[0]],
        "test": [r for r in results if r[0]["half"] == "test"],
        "definitions": [r for r in results if "definition" in r[0]],
    }.items():
        answerable = [(row, context) for row, context in chosen if row["answerable"]]
        others = [context for row, context in chosen if not row["answerable"]]
        gold = [[p.verified for p in context.passages if is_gold(p.passage, row)] for row, context in answerable]
        hits, verified = sum(map(bool, gold)), sum(map(any, gold))
        sufficient = sum(context.sufficient for _, context in answerable)
        tokens = np.mean([context.tokens for _, context in answerable])
        print(f"{name}: {len(answerable)} answerable, gold in context {hits}, verified {verified}, called sufficient "
              f"{sufficient}, mean tokens {tokens:.0f}; of {len(others)} unanswerable called sufficient "
              f"{sum(context.sufficient for context in others)}")  # fmt: skip


def is_gold(passage: Passage, row: dict[str, Any]) -> bool:
    """Return whether a passage is of an evidence's source and holds its quote."""
    source = str(passage.metadata.get("source", passage.id))
    return any(
        f"{row['project']}/{evidence['source']}" in source and evidence["quote"] in passage.content
        for evidence in row["evidence"]
    )


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file beside this one."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
