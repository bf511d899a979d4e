"""Agreement of the keyword index with `rank_bm25`, and recall of each, by analyzer.

    python benchmarks/lexical_agreement.py --data DATA

Both rank the same words. `all words` keeps English function words, `content words` (the default) leaves them out,
`white space` is the paper's own split. Recall is the share of a question's gold passages among the first 20.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.lexical.analyzers import Analyzer, content_words, whitespace, words
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index

ANALYZERS: dict[str, Analyzer] = {"white space": whitespace, "all words": words, "content words": content_words}


def main() -> None:
    """Print a line for each set and analyzer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--questions", type=int, default=300)
    arguments = parser.parse_args()
    print(f"{'set':<10}{'words':<15}{'overlap@10':>11}{'recall@20 rank_bm25':>21}{'ours':>8}")
    for name in ("hotpotqa", "2wiki", "nq_open", "musique", "nfcorpus", "scifact"):
        ids, texts, questions = load_set(arguments.data / name)
        for label, analyzer in ANALYZERS.items():
            overlap, theirs, ours = compare_indexes(ids, texts, questions[: arguments.questions], analyzer)
            print(f"{name:<10}{label:<15}{overlap:>11.3f}{theirs:>21.3f}{ours:>8.3f}", flush=True)


def compare_indexes(
    ids: list[str], texts: list[str], questions: list[tuple[str, set[str]]], analyzer: Analyzer
) -> tuple[float, float, float]:
    """Return the top-10 overlap, and recall at 20 of rank_bm25 and of ours."""
    rows = np.arange(len(texts))
    theirs, ours = RankBm25Index(analyzer=analyzer), Bm25Index(analyzer=analyzer)
    theirs.add(rows, texts)
    ours.add(rows, texts)
    overlaps, recalls = [], []
    for question, gold in questions:
        a, b = (index.search(question, 20)[0].tolist() for index in (theirs, ours))
        if a:
            overlaps.append(len(set(a[:10]) & set(b[:10])) / len(a[:10]))
        recalls.append([len(gold & {ids[row] for row in hits}) / len(gold) for hits in (a, b)])
    return float(np.mean(overlaps)), *np.mean(recalls, axis=0).tolist()


def load_set(folder: Path) -> tuple[list[str], list[str], list[tuple[str, set[str]]]]:
    """Return passage ids, their texts, and questions with the ids of their gold passages."""
    file = folder / "passages.jsonl.gz"
    passages = list(read_lines(file if file.exists() else folder / "corpus.jsonl.gz"))
    ids = [str(p["id"]) for p in passages]
    return ids, [f"{p['title']}\n{p['text']}" for p in passages], list(read_questions(folder))


def read_questions(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """Yield the questions of any of the sets that have gold passages."""
    if (folder / "questions.jsonl").exists():
        yield from ((q["question"], set(q["gold_passage_ids"])) for q in read_lines(folder / "questions.jsonl"))
    elif (folder / "claims.jsonl").exists():
        claims = ((c["claim"], {str(e["doc_id"]) for e in c["evidence"]}) for c in read_lines(folder / "claims.jsonl"))
        yield from (claim for claim in claims if claim[1])
    else:
        gold: dict[str, set[str]] = {}
        for row in read_lines(folder / "qrels.jsonl"):
            gold.setdefault(row["query_id"], set()).add(row["doc_id"])
        texts = {q["id"]: q["text"] for q in read_lines(folder / "queries.jsonl")}
        yield from ((texts[query], docs) for query, docs in gold.items() if query in texts)


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file, gzipped or not."""
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as rows:
        yield from map(json.loads, rows)


if __name__ == "__main__":
    main()
