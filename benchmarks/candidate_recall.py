"""Recall of the gold passages among the candidates, by source: at 20 and 50 of each source, and of each pair.

    python -m benchmarks.candidate_recall --data DATA [--manuals FOLDER]

The questions are those of `meve bench quality`, which the shipped models never saw. A pair of sources contributes
equally many candidates from each. Embeddings are cached. With a folder of manuals, the questions of
`benchmarks/documentation` on them are measured too: the share with a passage that holds a quote of the answer.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.documentation.measure import is_gold, read_manuals, read_rows
from meve.components.embedders import resolve_embedder
from meve.components.lexical.bm25 import Bm25Index
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import CACHE, QUESTIONS, SEED
from meve.types import Passage

SETS = ("hotpotqa", "2wiki", "musique", "nq_open", "nfcorpus", "scifact")
REACH = (20, 50)
Hits = Mapping[str, Sequence[Sequence[str]]]
"""By source, for each question, the ids of its best passages."""


def main() -> None:
    """Print a line for each set and number of candidates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--manuals", type=Path, help="the folder of the manuals")
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
        asked = [q for q in sample_questions(dataset.questions, arguments.questions, SEED) if q.gold and q.answerable]
        questions = [q.text for q in asked]
        hits = best_passages(dataset.passages, questions, embedders, arguments.cache / CACHE)
        gold = [frozenset(q.gold) for q in asked]
        for k in REACH:
            print(f"{name:<10}{k:>4}" + "".join(f"{recall(hits, gold, c, k):>22.3f}" for c in columns), flush=True)
    if arguments.manuals:
        passages = read_manuals(arguments.manuals, "static", None).passages()
        rows = [row for row in read_rows("questions.jsonl") if row["answerable"] and "definition" not in row]
        hits = best_passages(passages, [row["question"] for row in rows], embedders, arguments.cache / CACHE)
        gold = [frozenset(p.id for p in passages if is_gold(p, row)) for row in rows]
        for k in REACH:
            cells = [np.mean([bool(own) for own in find_gold(hits, gold, c, k)]) for c in columns]
            print(f"{'manuals':<10}{k:>4}" + "".join(f"{cell:>22.3f}" for cell in cells), flush=True)


def best_passages(passages: Sequence[Passage], questions: Sequence[str], embedders: Sequence[str], cache: Path) -> Hits:
    """Return the best passages of each source, for each question."""
    ids, texts, most = [p.id for p in passages], [p.content for p in passages], max(REACH)
    words = Bm25Index()
    words.add(np.arange(len(ids)), texts)
    hits: dict[str, list[list[str]]] = {
        "bm25": [[ids[row] for row in words.search(question, most)[0].tolist()] for question in questions]
    }
    for name in embedders:
        embedder = DiskCachedEmbedder(resolve_embedder(name), cache)
        vectors = embedder.embed_passages(texts)
        scores = np.stack([embedder.embed_query(question) for question in questions]) @ vectors.T
        hits[name] = [[ids[n] for n in np.argsort(-row, kind="stable")[:most]] for row in scores]
    return hits


def recall(hits: Hits, gold: Sequence[frozenset[str]], sources: str, k: int) -> float:
    """Return the mean share of the gold among the first k of each source."""
    reached = find_gold(hits, gold, sources, k)
    return float(np.mean([len(own) / len(wanted) for own, wanted in zip(reached, gold, strict=True)]))


def find_gold(hits: Hits, gold: Sequence[frozenset[str]], sources: str, k: int) -> list[frozenset[str]]:
    """Return for each question the gold among the first k of each source."""
    brought = [hits[source] for source in sources.split(" + ")]
    return [wanted & {i for source in brought for i in source[n][:k]} for n, wanted in enumerate(gold)]


if __name__ == "__main__":
    main()
