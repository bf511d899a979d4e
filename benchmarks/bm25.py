"""BM25: our inverted index against `rank_bm25` at 100,000 passages, and alone at a million.

    python benchmarks/bm25.py [--texts FILE] [--out benchmarks/out/bm25.json]

Both answer the same queries in turn, in one process, so that the ratio holds on any machine. Texts are words drawn by
Zipf's law, or the lines of --texts.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import timed

from meve.components.lexical.analyzers import whitespace
from meve.components.lexical.bm25 import Bm25Index
from meve.components.lexical.rank_bm25 import RankBm25Index
from meve.ports import LexicalIndex

VOCABULARY = 300_000
"""The number of distinct words to draw from; a million passages of 40 words contain almost all of them."""
WORDS = 40
"""The number of words of a passage."""


def passages(count: int, seed: int) -> Iterator[str]:
    """Yield passages of 40 words, drawn by Zipf's law (the n-th word 1/n times as often as the first)."""
    random = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    names = ["".join(letters[random.integers(0, len(letters), 2 + n % 8)]) + str(n) for n in range(VOCABULARY)]
    ends = np.cumsum(1.0 / np.arange(1, VOCABULARY + 1))
    for start in range(0, count, 10_000):
        drawn = np.searchsorted(ends, random.random((min(10_000, count - start), WORDS)) * ends[-1])
        for row in drawn.tolist():
            yield " ".join([names[n] for n in row])


def queries(texts: Sequence[str], count: int, seed: int) -> list[str]:
    """Return queries of 5 to 12 words of a random passage each."""
    random = np.random.default_rng(seed)
    chosen = [texts[i].split() for i in random.integers(0, len(texts), count)]
    return [" ".join(random.permutation(words)[: random.integers(5, 13)]) for words in chosen]


def search_time(index: LexicalIndex, query: str) -> float:
    """Return the milliseconds of a search for the ten best."""
    return timed(lambda: index.search(query, 10))


def compare(texts: Sequence[str], query_count: int) -> dict[str, Any]:
    """Measure both indexes on the same texts and queries, in turn, with the same analyzer."""
    rows = np.arange(len(texts))
    ours, default, theirs = Bm25Index(analyzer=whitespace), Bm25Index(), RankBm25Index(analyzer=whitespace)
    built = timed(lambda: ours.add(rows, texts))
    default.add(rows, texts)
    theirs.add(rows, texts)
    search_queries = queries(texts, query_count, seed=1)
    indexes: tuple[LexicalIndex, ...] = (ours, default, theirs)
    for index in indexes:  # rank_bm25 builds on its first search
        index.search(search_queries[0], 10)
    times: dict[str, list[float]] = {"ours": [], "ours_default_analyzer": [], "rank_bm25": []}
    for query in search_queries:
        for name, index in zip(times, indexes, strict=True):
            times[name].append(search_time(index, query))
    adds = []
    for i in range(200):

        def add_and_find(i: int = i) -> None:
            ours.add(np.array([len(texts) + i]), [f"freshly added passage unheard{i} {texts[i]}"])
            assert ours.search(f"unheard{i}", 1)[0].tolist() == [len(texts) + i]

        adds.append(timed(add_and_find))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "passages": len(texts),
        "queries": query_count,
        "build_ms": built,
        "query_ms": medians,
        "query_ms_p95": {name: float(np.quantile(values, 0.95)) for name, values in times.items()},
        "times_faster": medians["rank_bm25"] / medians["ours"],
        "times_faster_default_analyzer": medians["rank_bm25"] / medians["ours_default_analyzer"],
        "add_and_find_ms": statistics.median(adds),
        "add_and_find_ms_worst": max(adds),
    }


def large(count: int) -> dict[str, Any]:
    """Measure our index alone, in a process of its own, whose peak memory includes the texts."""
    texts = list(passages(count, seed=2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    index = Bm25Index()
    built = timed(lambda: index.add(np.arange(count), texts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = [search_time(index, query) for query in queries(texts, 200, seed=3)]
    added = timed(lambda: index.add(np.array([count]), ["freshly added"]))
    return {
        "passages": count,
        "build_s": built / 1000,
        "peak_gib": peak / 2**20,
        "peak_gib_of_texts_alone": before / 2**20,
        "query_ms": statistics.median(times),
        "query_ms_p95": float(np.quantile(times, 0.95)),
        "add_ms": added,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="a file with a passage a line, instead of made-up ones")
    parser.add_argument("--passages", type=int, default=100_000, help="for the comparison (default 100,000)")
    parser.add_argument("--queries", type=int, default=30, help="for the comparison (default 30)")
    parser.add_argument("--large", type=int, default=1_000_000, help="passages of the large index; 0 leaves it out")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out/bm25.json"))
    arguments = parser.parse_args()
    if arguments.texts:
        texts = [line for line in arguments.texts.read_text(encoding="utf-8").splitlines() if line][
            : arguments.passages
        ]
    else:
        texts = list(passages(arguments.passages, seed=0))
    results = {"comparison": compare(texts, arguments.queries)}
    if arguments.large:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results["large"] = pool.apply(large, (arguments.large,))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    report(results)


def report(results: dict[str, dict[str, Any]]) -> None:
    table = Table("what", "found", "target", title="BM25")
    one = results["comparison"]
    table.add_row(f"query at {one['passages']:,}, rank_bm25", f"{one['query_ms']['rank_bm25']:.1f} ms", "")
    table.add_row("the same, ours", f"{one['query_ms']['ours']:.2f} ms", "")
    table.add_row("times faster, same analyzer", f"{one['times_faster']:.0f}", ">= 50")
    table.add_row("times faster, default analyzer", f"{one['times_faster_default_analyzer']:.0f}", ">= 50")
    table.add_row("add one and find it", f"{one['add_and_find_ms']:.2f} ms", "< 50 ms")
    if large_one := results.get("large"):
        table.add_row(f"build {large_one['passages']:,}", f"{large_one['build_s']:.0f} s", "")
        table.add_row("peak memory, texts included", f"{large_one['peak_gib']:.2f} GiB", "< 8 GiB")
        table.add_row("query there", f"{large_one['query_ms']:.1f} ms", "")
    Console().print(table)


if __name__ == "__main__":
    main()
