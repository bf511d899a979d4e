"""Measures which memories `verify=True` keeps, by the least probability that they must have.

    python -m benchmarks.verify_threshold --data DATA --kind locomo --questions 24 --embedder minilm

Of each user, some questions are drawn. Prints the recall of the first ten memories of a search without verification,
and for each threshold that of the first ten verified ones, how many others are verified for a question, and the share
of the questions for which none is.
"""

import argparse
import random
from pathlib import Path

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.evaluation.experiments.memory.recall import KINDS, open_filled

CANDIDATES, SHOWN, BUDGET, SEED = 30, 10, 8_000, 1
THRESHOLDS = (0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1)


def main() -> None:
    """Search with and without verification, and print a line for each threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kind", choices=KINDS, default="locomo")
    parser.add_argument("--questions", type=int, default=25, help="of each user")
    parser.add_argument("--embedder", default="static")
    given = parser.parse_args()
    talk, rng = KINDS[given.kind](given.data), random.Random(SEED)
    plain: list[float] = []
    verified: dict[float, list[tuple[float, int, bool]]] = {threshold: [] for threshold in THRESHOLDS}
    with open_filled(talk.turns, resolve_embedder(given.embedder), verify_threshold=0.0) as memory:
        for user in talk.turns:
            own = [q for q in talk.questions if q.user == user]
            for question in rng.sample(own, min(given.questions, len(own))):
                asked, gold = {"user_id": user, "max_tokens": BUDGET}, set(question.evidence)
                first = {r.id for r in memory.search(question.text, limit=SHOWN, **asked).records}
                plain.append(len(gold & first) / len(gold))
                recall = memory.search(question.text, limit=CANDIDATES, verify=True, **asked)
                known = {c.id: c.scores.get("verifier", 0.0) for c in recall.trace.candidates}
                for threshold, rows in verified.items():
                    kept = [r.id for r in recall.records if known[r.id] >= threshold]
                    rows.append((len(gold & set(kept[:SHOWN])) / len(gold), len(set(kept) - gold), not kept))
    print(f"{len(plain)} questions, without verification recall@{SHOWN} {np.mean(plain):.3f}")
    for threshold, rows in verified.items():
        recalls, others, empty = np.mean(rows, axis=0)
        print(
            f"{threshold}: recall@{SHOWN} {recalls:.3f}, {others:.1f} others, nothing for {empty:.2f} of the questions"
        )


if __name__ == "__main__":
    main()
