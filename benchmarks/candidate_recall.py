"""Recall of the gold passages among the candidates, by source: at 20 and 50 of each source, and of each pair.

    python benchmarks/candidate_recall.py --data DATA

The questions are those of `meve bench quality`, which the shipped models never saw. A pair of sources contributes
equally many candidates from each. Embeddings are cached.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.components.lexical.bm25 import Bm25Index
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, QUESTIONS, SEED
from meve.evaluation.types import EvaluationSet

SETS = ("hotpotqa", "2wiki", "musique", "nq_open", "nfcorpus", "scifact")
REACH = (20, 50)
Hits = Mapping[str, Sequence[Sequence[str]]]
"""By source, for each question, the ids of its best passages."""


def main() -> None:
    """Print a line for each set and number of candidates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--cache", type=Path, default=Path("benchmarks/out/cache"), help="where embeddings are kept")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--embedder", action="append", default=[], help="another than the two; may be repeated")
    parser.add_argument("--set", action="append", default=[], help="only this one; may be repeated")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    embedders = arguments.embedder or ["static", "minilm"]
    columns = [*embedders, "bm25", *(f"{name} + bm25" for name in embedders)]
    print(f"{'set':<10}{'k':>4}" + "".join(f"{name:>22}" for name in columns))
    for name in arguments.set or SETS:
        dataset = read_set(name, arguments.data)
        hits, gold = best_passages(dataset, embedders, arguments.questions, arguments.cache / CACHE)
        for k in REACH:
            print(f"{name:<10}{k:>4}" + "".join(f"{recall(hits, gold, c, k):>22.3f}" for c in columns), flush=True)


def best_passages(
    dataset: EvaluationSet, embedders: Sequence[str], questions: int, cache: Path
) -> tuple[Hits, list[frozenset[str]]]:
    """Return the best passages of each source, for each question with gold, and its gold."""
    asked_questions = [q for q in sample_questions(dataset.questions, questions, SEED) if q.gold and q.answerable]
    ids, texts, most = [p.id for p in dataset.passages], [p.content for p in dataset.passages], max(REACH)
    words = Bm25Index()
    words.add(np.arange(len(ids)), texts)
    hits: dict[str, list[list[str]]] = {
        "bm25": [[ids[row] for row in words.search(q.text, most)[0].tolist()] for q in asked_questions]
    }
    for name in embedders:
        embedder = DiskCachedEmbedder(resolve_embedder(name), cache)
        vectors = embedder.embed_passages(texts)
        scores = np.stack([embedder.embed_query(q.text) for q in asked_questions]) @ vectors.T
        hits[name] = [[ids[n] for n in np.argsort(-row, kind="stable")[:most]] for row in scores]
    return hits, [frozenset(q.gold) for q in asked_questions]


def recall(hits: Hits, gold: Sequence[frozenset[str]], sources: str, k: int) -> float:
    """Return the mean share of the gold among the first k of each source."""
    brought = [hits[source] for source in sources.split(" + ")]
    shares = [
        len(wanted & {i for source in brought for i in source[n][:k]}) / len(wanted) for n, wanted in enumerate(gold)
    ]
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
