"""What the five phases cost without the models, from 10,000 to 300,000 passages (HNSW) and at 1,000,000 (IVF).

    python benchmarks/phases.py --out benchmarks/out            (about an hour on two cores: the graphs take most of it)
    python benchmarks/phases.py --sizes 10000,100000 --ivf 0    (less of it)

A fake embedder and a fake tokenizer stand in for the models, so that what is timed is MeVe: search, verdicts (the
calibrated cosine, over stored vectors), fallback, redundancy, budget, trace. The fake embedder's own time is left out.
Each size is built and asked in a process of its own, so that its memory can be told. An interrupted run resumes.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from synthetic import DirectionEmbedder, Language

import meve
from meve import Passage, Retriever
from meve.parts.verifiers.cosine import CosineVerifier, shipped_calibration
from meve.testing.fakes import WordCounter

DIMENSION, LENGTH, QUERIES, QUERY_WORDS = 384, 40, 300, 8
PASSES = 5
"""How often all questions are asked; the figures are those of the middle pass."""
FLAT_TO = 100_000
"""Beyond this, comparing with every vector is too slow to be of interest."""
NEVER_ENOUGH = 100
"""Of `min_verified`, so that the fallback runs for every query, and every phase is in every figure."""


def main() -> None:
    """Measure each size, then draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    parser.add_argument("--sizes", default="10000,30000,100000,300000")
    parser.add_argument("--ivf", type=int, default=1_000_000)
    parser.add_argument("--child", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        kind, size = arguments.child
        print(json.dumps(measured(kind, int(size))))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [("hnsw", int(size)) for size in arguments.sizes.split(",") if size]
    jobs += [("flat", size) for _, size in jobs if size <= FLAT_TO]
    jobs += [("ivf", arguments.ivf)] if arguments.ivf else []
    results = [fetched(kind, size, arguments.out) for kind, size in jobs]
    about = {"meve": meve.__version__, "python": platform.python_version(), "cores": psutil.cpu_count()}
    (arguments.out / "phases.json").write_text(json.dumps({"about": about, "results": results}, indent=1))
    for result in results:
        print(line(result))
    draw(results, arguments.out / "phases.svg")


def fetched(kind: str, size: int, out: Path) -> dict[str, Any]:
    """One size, from an earlier run's file if there is one."""
    kept = out / f"phases-{kind}-{size}.json"
    if not kept.exists():
        print(f"{kind} {size:,} …", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--child", kind, str(size)]
        kept.write_text(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def measured(kind: str, size: int) -> dict[str, Any]:
    """Build one index and ask it."""
    language = Language(dimension=DIMENSION)
    embedder = DirectionEmbedder(language)
    drawn = language.draw(size, LENGTH, seed=1)
    before = rss()
    verifier = CosineVerifier(embedder, shipped_calibration())
    retriever = Retriever.empty(
        embedder=embedder,
        verifier=verifier,
        tokens=WordCounter(),
        dense=kind,  # type: ignore[arg-type]
    )
    built = build(retriever, language.texts(drawn))
    questions = language.queries(drawn, QUERIES, QUERY_WORDS, seed=2)
    passes = [[retriever.retrieve(q, min_verified=NEVER_ENOUGH).trace for q in questions] for _ in range(PASSES)]
    traces = sorted(passes, key=lambda traces: statistics.median(t.ms for t in traces))[PASSES // 2]
    totals = [t.ms - t.embed_ms for t in traces]
    phases = {p.name: statistics.median(t.phases[n].ms for t in traces) for n, p in enumerate(traces[0].phases)}
    return {
        "kind": kind,
        "passages": size,
        **built,
        "memory_gib": round((rss() - before) / 2**30, 3),
        "p50_ms": round(statistics.median(totals), 3),
        "p95_ms": round(float(np.percentile(totals, 95)), 3),
        "p99_ms": round(float(np.percentile(totals, 99)), 3),
        "phases_p50_ms": phases,
        "recall_at_20": recall(retriever, embedder, questions),
    }


def build(retriever: Retriever, texts: list[str]) -> dict[str, float]:
    """Add the passages, with the time that each part of it took."""
    spent = {"embed_s": 0.0, "dense_s": 0.0, "lexical_s": 0.0}
    corpus = retriever._corpus
    for owner, method, name in (
        (retriever.embedder, "embed_passages", "embed_s"),
        (corpus.dense, "add", "dense_s"),
        (corpus.primary_lexical, "add", "lexical_s"),
    ):
        setattr(owner, method, timed(getattr(owner, method), spent, name))
    start = time.perf_counter()
    retriever.update(add=[Passage(id=f"{n:07d}", text=text) for n, text in enumerate(texts)])
    whole = time.perf_counter() - start
    for owner, method in (
        (retriever.embedder, "embed_passages"),
        (corpus.dense, "add"),
        (corpus.primary_lexical, "add"),
    ):
        delattr(owner, method)
    return {"build_s": round(whole, 2), **{name: round(seconds, 2) for name, seconds in spent.items()}}


def timed(call: Any, spent: dict[str, float], name: str) -> Any:
    """The same call, its time added up."""

    def wrapper(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return call(*args)
        finally:
            spent[name] += time.perf_counter() - start

    return wrapper


def recall(retriever: Retriever, embedder: DirectionEmbedder, questions: list[str]) -> float:
    """The share of the true 20 nearest that the index finds, over 100 questions."""
    dense = retriever._corpus.dense
    rows = np.asarray(sorted(retriever._corpus.entries), dtype=np.int64)
    queries = np.stack([embedder.embed_query(q) for q in questions[:100]])
    best = np.full((len(queries), 20), -2.0, dtype=np.float32)
    for start in range(0, len(rows), 50_000):
        scores = queries @ dense.vectors(rows[start : start + 50_000]).T
        best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -20:]
    floor = best[:, 0] - 1e-5
    found = [int((dense.search(q, 20)[1] >= floor[n]).sum()) for n, q in enumerate(queries)]
    return round(sum(found) / (20 * len(queries)), 4)


def rss() -> int:
    """This process's memory, in bytes."""
    return int(psutil.Process().memory_info().rss)


def line(r: dict[str, Any]) -> str:
    """One result, for reading."""
    return (
        f"{r['kind']:>5} {r['passages']:>9,}: p50 {r['p50_ms']:.2f} ms, p95 {r['p95_ms']:.2f} ms; "
        f"dense {r['dense_s']} s, words {r['lexical_s']} s, {r['memory_gib']} GiB; recall@20 {r['recall_at_20']}"
    )


def draw(results: list[dict[str, Any]], file: Path) -> None:
    """Latency, building time and memory against size."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for kind, marker in (("flat", "s"), ("hnsw", "o"), ("ivf", "D")):
        rows = [r for r in results if r["kind"] == kind]
        sizes = [r["passages"] for r in rows]
        axes[0].plot(sizes, [r["p50_ms"] for r in rows], marker=marker, label=f"{kind} p50")
        axes[1].plot(sizes, [r["dense_s"] for r in rows], marker=marker, label=kind)
        axes[2].plot(sizes, [r["memory_gib"] for r in rows], marker=marker, label=kind)
    axes[0].axhline(5, color="grey", linestyle=":", linewidth=1)
    axes[0].annotate("target at 100,000: 5 ms", (1e4, 5), textcoords="offset points", xytext=(0, 4), color="grey")
    for axis, title in zip(
        axes,
        ("Five phases without models, ms", "Building the dense index, s", "Memory, passages included, GiB"),
        strict=True,
    ):
        axis.set(xscale="log", yscale="log", xlabel="passages", title=title)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(file)


if __name__ == "__main__":
    main()
