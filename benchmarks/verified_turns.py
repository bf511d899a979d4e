"""Measures how many turns of conversations the verifier accepts, read alone and with their neighbours.

    python -m benchmarks.verified_turns --data DATA [--questions 36]

Of each conversation of LoCoMo, some questions are drawn, and the verifier reads the 30 memories that rank first. Prints
for each threshold the share of the evidence that is verified, the number of other turns that are, and the recall of the
first ten that are.
"""

import argparse
import random
from pathlib import Path

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.components.verifiers import load_verifier
from meve.evaluation.experiments.memory.recall import KINDS, open_filled

CANDIDATES, SHOWN, SEED = 30, 10, 1
READ = {"alone": (0, 0), "with the turn before": (1, 0), "between its neighbours": (1, 1)}
"""The numbers of turns before and after a turn that are read with it."""


def main() -> None:
    """Read the turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=36, help="of each conversation")
    given = parser.parse_args()
    talk, verifier = KINDS["locomo"](given.data), load_verifier()
    rng = random.Random(SEED)
    questions = []
    for user in talk.turns:
        own = [q for q in talk.questions if q.user == user]
        questions += rng.sample(own, min(given.questions, len(own)))
    rows = []
    with open_filled(talk.turns, resolve_embedder("static")) as memory:
        for question in questions:
            turns = talk.turns[question.user]
            place = {turn.id: n for n, turn in enumerate(turns)}
            recall = memory.search(question.text, user_id=question.user, limit=CANDIDATES, max_tokens=8_000)
            places = [place[record.id] for record in recall.records]
            scores = {}
            for name, (before, after) in READ.items():
                texts = ["\n".join(_session(turns, n, before, after)) for n in places]
                scores[name] = verifier.score(question.text, texts)
            rows.append((question.evidence, [record.id for record in recall.records], scores))
    for name in READ:
        for threshold in (0.2, 0.3, 0.4, 0.5):
            print(f"{name}, threshold {threshold}: {_describe(rows, name, threshold)}")


def _session(turns, n: int, before: int, after: int) -> list[str]:  # noqa: ANN001 - of the evaluation
    """Return the texts of a turn and of its neighbours in its session."""
    near = turns[max(0, n - before) : n + after + 1]
    return [turn.text for turn in near if turn.session == turns[n].session]


def _describe(rows, name: str, threshold: float) -> str:  # noqa: ANN001
    found, others, recalls, candidates = 0, 0, [], 0
    for evidence, ids, scores in rows:
        verified = [i for i, score in zip(ids, scores[name], strict=True) if score >= threshold]
        found += len(evidence & set(verified))
        candidates += len(evidence & set(ids))
        others += len(set(verified) - evidence)
        recalls.append(len(evidence & set(verified[:SHOWN])) / len(evidence))
    return (
        f"{found / candidates:.3f} of the evidence verified, {others / len(rows):.1f} other turns a question, "
        f"recall@{SHOWN} {np.mean(recalls):.3f}"
    )


if __name__ == "__main__":
    main()
