"""Recall, memory and speed of the index `rabitq` beside `flat` and `ivf`.

    python -m benchmarks.rabitq_index [--count 1000000 --dimension 256] [--kinds flat ivf rabitq]
    python -m benchmarks.rabitq_index --data DATA [--embedder static] [--sets scifact nfcorpus hotpotqa]

Without `--data`, vectors lie around 2,000 centres. With it, they are those of the passages of evaluation sets, and the
queries those of their questions. Each index is built and saved in one process, and loaded and searched in a new one.
Recall is the share of the 20 nearest vectors, by an exact search, that a search for 20 returns. Memory is what the
process has for itself (anonymous) after all searches, less what it had before it loaded the index; pages of mapped
files aren't counted, since the system takes them back at need. Times are medians in milliseconds.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from meve._formulas import normalize
from meve.components.dense import dense_class
from meve.types import FloatArray

K, QUERIES, BATCH = 20, 200, 50_000


def main() -> None:
    """Print a line for each index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--kinds", nargs="+", default=["flat", "rabitq"], choices=["flat", "hnsw", "ivf", "rabitq"])
    parser.add_argument("--data", type=Path, help="the folder of evaluation sets")
    parser.add_argument("--sets", nargs="+", default=["scifact", "nfcorpus", "hotpotqa"])
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--folder", type=Path, help="for the files; a temporary one by default")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "KIND"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        {"build": build, "search": search}[arguments.step[0]](arguments.step[1], arguments.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if arguments.data:
            embed_sets(arguments.data, arguments.sets, arguments.embedder, folder)
        elif not (folder / "best.npy").exists():
            synthesize(arguments.count, arguments.dimension, folder)
        print("kind    vectors     build s  MiB  recall  p50 ms  p95 ms")
        for kind in arguments.kinds:
            for step in ("build", "search"):
                command = [sys.executable, "-m", "benchmarks.rabitq_index", "--folder", str(folder), "--step", step]
                subprocess.run([*command, kind], check=True)


def synthesize(count: int, dimension: int, folder: Path) -> None:
    """Write vectors around centres, queries beside them, and the nearest vectors of each query."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((2_000, dimension), dtype=np.float32)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (count, dimension))
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        near = centres[random.integers(0, len(centres), size)]
        vectors[start : start + size] = normalize(near + random.standard_normal((size, dimension), dtype=np.float32))
    near = centres[random.integers(0, len(centres), QUERIES)]
    write_queries(normalize(near + random.standard_normal((QUERIES, dimension), dtype=np.float32)), vectors, folder)


def embed_sets(data: Path, sets: list[str], name: str, folder: Path) -> None:
    """Write the vectors of passages and questions of evaluation sets."""
    from benchmarks.lexical_agreement import load_set
    from meve.components.embedders import resolve_embedder

    embedder = resolve_embedder(name)
    texts, questions = [], []
    for each in sets:
        _, passages, asked = load_set(data / each)
        texts += passages
        questions += [question for question, _ in asked[: QUERIES // len(sets)]]
    np.save(folder / "vectors.npy", embedder.embed_passages(texts))
    queries = np.stack([embedder.embed_query(question) for question in questions])
    write_queries(queries, np.load(folder / "vectors.npy", mmap_mode="r"), folder)


def write_queries(queries: FloatArray, vectors: FloatArray, folder: Path) -> None:
    """Write queries (n, d) and their nearest vectors, shape (n, K)."""
    best = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for start in range(0, len(vectors), BATCH):
        part = queries @ vectors[start : start + BATCH].T
        scores = np.concatenate([scores, part], axis=1)
        best = np.concatenate([best, np.arange(start, start + part.shape[1])[None].repeat(len(queries), 0)], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        scores, best = np.take_along_axis(scores, order, 1), np.take_along_axis(best, order, 1)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "best.npy", best)


def build(kind: str, folder: Path) -> None:
    """Build an index in batches, as a growing corpus does, and save it."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    index = dense_class(kind)(vectors.shape[1])
    start = time.perf_counter()
    for first in range(0, len(vectors), BATCH):
        part = np.ascontiguousarray(vectors[first : first + BATCH])
        index.add(np.arange(first, first + len(part)), part)
    seconds = time.perf_counter() - start
    path = folder / kind
    path.unlink(missing_ok=True)
    index.save(path)
    print(f"{kind:7} {len(index):9,} {seconds:9.0f}", end=" ", flush=True)


def search(kind: str, folder: Path) -> None:
    """Load an index, search it, and compare with the exact results."""
    queries, best = np.load(folder / "queries.npy"), np.load(folder / "best.npy")
    empty = dense_class(kind)(queries.shape[1])
    empty.search(queries[0], K)
    before = private_bytes()
    index = dense_class(kind).load(folder / kind)
    times, hits = [], 0
    for query, nearest in zip(queries, best, strict=True):
        start = time.perf_counter()
        rows, _ = index.search(query, K)
        times.append(1e3 * (time.perf_counter() - start))
        hits += len(set(rows.tolist()) & set(nearest.tolist()))
    used = (private_bytes() - before) / 2**20
    low, high = np.percentile(times, [50, 95])
    print(f"{used:5.0f}  {hits / best.size:.3f}  {low:6.1f}  {high:6.1f}", flush=True)


def private_bytes() -> int:
    """Return the resident bytes that belong to no file (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


if __name__ == "__main__":
    main()
