"""Compare the default retrieval with plain searches that may use as many tokens, question by question.

python -m benchmarks.equal_tokens --data DATA --cache FOLDER [--sets rgb,nq_open] [--questions 150]

Each plain search gets the tokens that the default's context took for the same question. Prints the recall of gold
passages, and the mean difference from the default with its 95 % interval (bootstrap over questions).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import RetrievalOptions, load_components
from meve.evaluation.systems import SYSTEMS, IndexedPassages
from meve.evaluation.types import EvaluationSet, Question, SharedComponents
from meve.pipeline.config import RetrieverConfig

PLAIN = ("dense", "bm25", "hybrid")


def measure(indexed: IndexedPassages, question: Question) -> tuple[list[float], list[int]]:
    """Return the recall and the tokens of the default, then of each plain search with as many tokens."""
    outputs = [SYSTEMS["full"](indexed)(question.text)]
    config = RetrieverConfig(max_tokens=max(outputs[0].tokens, 1))
    outputs += [SYSTEMS[name](indexed.with_config(config))(question.text) for name in PLAIN]
    recalls = [len(question.gold.keys() & {p.id for p in o.passages}) / len(question.gold) for o in outputs]
    return recalls, [o.tokens for o in outputs]


def with_indexes(
    dataset: EvaluationSet, questions: list[Question], components: SharedComponents
) -> Iterator[tuple[IndexedPassages, Question]]:
    """Yield each question with the passages that it may choose from."""
    by_id = {p.id: p for p in dataset.passages}
    whole = None if any(q.pool for q in questions) else IndexedPassages(dataset.passages, components).prepare()
    for question in questions:
        if question.gold:
            pool = [by_id[i] for i in question.pool or ()]
            yield whole or IndexedPassages(pool, components).prepare(), question


def main() -> None:
    """Print a table per set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", default="rgb")
    parser.add_argument("--questions", type=int, default=150)
    given = parser.parse_args()
    components = load_components(
        RetrievalOptions(data=given.data, to=given.cache, cache=given.cache, embedder="minilm"), RetrieverConfig()
    )
    random = np.random.default_rng(42)
    for name in given.sets.split(","):
        dataset = read_set(name, given.data)
        questions = sample_questions(dataset.questions, given.questions, 42)
        rows = [measure(*each) for each in with_indexes(dataset, list(questions), components)]
        recalls, tokens = np.array([r for r, _ in rows]), np.array([t for _, t in rows])
        drawn = random.integers(0, len(rows), (2_000, len(rows)))
        for n, system in enumerate(("full", *PLAIN)):
            gains = recalls[:, 0] - recalls[:, n]
            low, high = np.percentile(gains[drawn].mean(axis=1), [2.5, 97.5])
            print(f"{name:18} {system:8} recall {recalls[:, n].mean():.3f} at {tokens[:, n].mean():.0f} tokens; "
                  f"full gains {gains.mean():+.3f} ({low:+.3f} to {high:+.3f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
