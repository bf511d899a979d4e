"""Time, memory and disk of a corpus as it grows: real passages embedded and in PostgreSQL, and synthetic vectors.

    OMP_NUM_THREADS=1 python -m benchmarks.growth FOLDER [--sizes 10000 100000 1000000] [--dense auto]
        [--postgres URL] [--vectors 0] [--kinds flat ivf] [--draw]

Passages are pieces of at most 600 characters of the texts below `--roots`, each once, in an order that a hash gives;
those that are asked for are among the first 10,000, by eight words in a row. They are embedded by the static embedder,
and each size is reached by adding to the index of the size before.
Each step runs in a process of its own, and adds a line to FOLDER/results.jsonl; what stands there isn't done again.
`--vectors 5000000` compares the kinds of index in `--kinds` on random vectors of 256 numbers around 1,000 centres,
from 10,000 up; any kind of `make_dense` can be named, and `--sizes` without numbers leaves the passages out. A step may
use 8 GiB. `--draw` only draws docs/images/growth.svg.

Times are of the processor, but those of PostgreSQL, whose server is another process; its graph of the vectors is built
when a size is reached, and dropped before more is added. `recall` is the share of the 20 nearest vectors, by comparing
all, that the index returns; `found` is the share of questions whose passage it returns. `anonymous_mib` is memory that
belongs to no file, `peak_mib` all that was resident at once. `benchmarks.growth_ratios` compares two sizes in turn.
"""

import argparse
import gzip
import json
import random
import re
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth_picture import draw_growth
from meve import Passage, Retriever
from meve.components.dense import DenseKind, make_dense
from meve.components.embedders import resolve_embedder
from meve.pipeline.trace import PhaseTrace
from meve.testing.fakes import OverlapVerifier
from meve.types import Query

ROOTS = [sysconfig.get_path("purelib"), "/usr/share/doc", "/usr/share/man", sysconfig.get_path("stdlib")]
SUFFIXES = {".py", ".pyi", ".md", ".rst", ".txt", ".html", ".gz", ".jsonl"}
LONGEST, SHORTEST = 600, 100
"""Characters of a passage."""
BATCH = 10_000
QUESTIONS = 200
K = 20
DIMENSION, CENTRES = 256, 1_000
MOST_MEMORY = 8 << 30
PICTURE = Path("docs/images/growth.svg")

Row = dict[str, Any]


def main() -> None:
    """Run each step that is missing in the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--roots", nargs="+", default=ROOTS)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dense", default="auto", help="the kind of index for the passages' vectors")
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--vectors", type=int, default=0, help="the most synthetic vectors")
    parser.add_argument("--kinds", nargs="+", default=["flat", "ivf"], help="kinds of index for them")
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--step", nargs=2, metavar=("WHAT", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        run_step(options, options.step[0], int(options.step[1]))
        return
    if not options.draw:
        options.folder.mkdir(exist_ok=True)
        for what, size in steps(options):
            if not any((row["what"], row["size"]) == (what, size) for row in read_results(options.folder)):
                command = [sys.executable, "-m", "benchmarks.growth", *sys.argv[1:], "--step", what, str(size)]
                subprocess.run(command, check=True)
    draw_growth(read_results(options.folder), PICTURE)


def steps(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Return the steps in their order."""
    if options.sizes and not (options.folder / "passages.jsonl").exists():
        yield "passages", max(options.sizes)
    for size in options.sizes:
        yield "build", size
        yield "embedded", size
    for size in options.sizes if options.postgres else []:
        yield "postgresql", size
    sizes = [10**n for n in range(4, 10) if 10**n < options.vectors]
    for size in [*sizes, *([options.vectors] if options.vectors else [])]:
        for kind in options.kinds:
            yield f"{kind} vectors", size


def run_step(options: argparse.Namespace, what: str, size: int) -> None:
    """Run one step, and note what it measured."""
    folder: Path = options.folder
    run: Callable[[], Row] = {
        "passages": partial(write_passages, folder, options.roots, size),
        "build": partial(build, folder, size, options.dense),
        "embedded": partial(search_embedded, folder, size),
        "postgresql": partial(fill_and_search, folder, size, options.postgres),
    }.get(what) or partial(search_vectors, what.removesuffix(" vectors"), size)
    start, used = time.perf_counter(), time.process_time()
    row: Row = {"what": what, "size": size, **run()}
    row |= {"step_s": round(time.perf_counter() - start), "step_cpu_s": round(time.process_time() - used)}
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
    print(row, flush=True)
    with open(folder / "results.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")


def read_results(folder: Path) -> list[Row]:
    """Return what the steps measured."""
    file = folder / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def write_passages(folder: Path, roots: list[str], size: int) -> Row:
    """Cut the texts below these folders, and write so many passages."""
    passages: dict[bytes, str] = {}
    for root in roots:
        for file in sorted(Path(root).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                passages.update((blake2b(p.encode(), digest_size=16).digest(), p) for p in cut(read_text(file)))
    if len(passages) < size:
        raise SystemExit(f"there are {len(passages):,} passages below {', '.join(roots)}: name more --roots")
    chosen = sorted(passages)[:size]
    part = folder / "passages.part"
    with open(part, "w") as lines:
        lines.writelines(json.dumps(passages[key]) + "\n" for key in chosen)
    part.rename(folder / "passages.jsonl")
    return {"all": len(passages), "mean_length": round(sum(len(passages[key]) for key in chosen) / size)}


def read_text(file: Path) -> str:
    """Return the text of a file, packed or not; empty if it is none."""
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        return data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""


def cut(text: str) -> Iterator[str]:
    """Yield a text's passages: paragraphs, joined while they fit, and cut where they are longer."""
    part = ""
    for block in re.split(r"\n\s*\n", text.replace("\0", "")):
        for start in range(0, len(block), LONGEST):
            piece = block[start : start + LONGEST]
            if len(part) + len(piece) > LONGEST:
                yield from [part.strip()] if len(part.strip()) >= SHORTEST else []
                part = ""
            part += ("\n\n" if part else "") + piece
    yield from [part.strip()] if len(part.strip()) >= SHORTEST else []


def read_passages(folder: Path, size: int) -> Iterator[Passage]:
    """Yield the first passages."""
    with open(folder / "passages.jsonl") as lines:
        for n, line in zip(range(size), lines, strict=False):
            yield Passage(id=f"{n:07}", text=json.loads(line))


def make_questions(folder: Path) -> list[tuple[str, str]]:
    """Return questions, each with the id of the passage that it is taken from."""
    drawn = random.Random(7)
    questions = []
    for passage in drawn.sample(list(read_passages(folder, 10_000)), 4 * QUESTIONS):
        words = re.findall(r"[A-Za-z]{3,}", passage.text)
        if len(words) >= 24:
            at = drawn.randrange(len(words) - 8)
            questions.append((" ".join(words[at : at + 8]), passage.id))
    return questions[:QUESTIONS]


def build(folder: Path, size: int, kind: DenseKind) -> Row:
    """Add passages to the largest index so far until there are so many, and save it; all times are CPU seconds."""
    before = max((row["size"] for row in read_results(folder) if row["what"] == "build"), default=0)
    if before:
        retriever = Retriever.load(folder / f"index {before}", verifier=OverlapVerifier())
    else:
        dense = make_dense(kind, resolve_embedder("static").dimension, size)
        retriever = Retriever.empty(embedder="static", dense=dense, verifier=OverlapVerifier())
    passages = list(read_passages(folder, size))[before:]
    corpus: Any = retriever._corpus
    row: Row = {"dense": corpus.dense.kind, "added": len(passages)}
    row |= dict.fromkeys(("embed_s", "count_s", "words_s", "vectors_s"), 0.0)
    time_calls(retriever.embedder, "embed_passages", row, "embed_s")
    time_calls(retriever.tokens, "count_many", row, "count_s")
    time_calls(corpus.primary_lexical, "add", row, "words_s")
    time_calls(corpus.dense, "add", row, "vectors_s")
    used = time.process_time()
    retriever.update(add=passages)
    row["cpu_s"] = time.process_time() - used
    used = time.process_time()
    retriever.save(folder / f"index {size}")
    row["save_s"] = time.process_time() - used
    row = {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}
    return row | {"bytes": sum(f.stat().st_size for f in (folder / f"index {size}").rglob("*") if f.is_file())}


def time_calls(target: object, method: str, row: Row, name: str) -> None:
    """Let each call of a method add its CPU time to the row."""
    inner = getattr(target, method)

    def call(*given: object) -> object:
        used = time.process_time()
        result = inner(*given)
        row[name] += time.process_time() - used
        return result

    setattr(target, method, call)


def search_embedded(folder: Path, size: int) -> Row:
    """Load an index, and search it."""
    Retriever.from_texts(["Load code and models."], embedder="static", verifier=OverlapVerifier()).retrieve("code")
    before, used = resident(), time.process_time()
    retriever = Retriever.load(folder / f"index {size}", verifier=OverlapVerifier())
    row: Row = {"load_s": round(time.process_time() - used, 1)}
    row |= search(retriever, folder, time.process_time) | time_phases(retriever, folder)
    row |= {"resident_mib": resident() - before, "anonymous_mib": anonymous()}
    return row | {"recall": measure_recall(retriever, folder)}


def time_phases(retriever: Retriever, folder: Path) -> Row:
    """Return the median CPU time of embedding a question and of each phase of a retrieval, in milliseconds."""
    begun: dict[str, float] = {}
    times: dict[str, list[float]] = {}

    def observe(name: str, phase: PhaseTrace | None) -> None:
        if phase is None:
            begun[name] = time.process_time()
        elif not phase.skipped:
            times.setdefault(name, []).append(1_000 * (time.process_time() - begun[name]))

    for text, _ in make_questions(folder):
        used = time.process_time()
        vector = retriever.embedder.embed_query(text)
        times.setdefault("embed", []).append(1_000 * (time.process_time() - used))
        used = time.process_time()
        retriever.retrieve(text, vector=vector, observer=observe)
        times.setdefault("whole", []).append(1_000 * (time.process_time() - used))
    return {"phases": {name: [round(float(np.median(each)), 2), len(each)] for name, each in times.items()}}


def measure_recall(retriever: Retriever, folder: Path) -> float:
    """Return the share of the nearest vectors of each question, by comparing all, that the index returns."""
    corpus: Any = retriever._corpus
    index = corpus.dense
    queries = np.stack([retriever.embedder.embed_query(text) for text, _ in make_questions(folder)])
    best, rows = start_best(len(queries), K)
    for first in range(0, len(index), BATCH):
        numbers = np.arange(first, min(first + BATCH, len(index)))
        best, rows = keep_best(best, rows, queries @ index.vectors(numbers).T, first)
    hits = [index.search(query, K)[0] for query in queries]
    found = sum(int(np.isin(each, true).sum()) for each, true in zip(hits, rows, strict=True))
    return round(found / (K * len(queries)), 4)


def open_collection(url: str, name: str) -> Retriever:
    """Open a collection in PostgreSQL, or create it."""
    return Retriever.over(url, collection=name, embedder="static", verifier=OverlapVerifier())


def fill_and_search(folder: Path, size: int, url: str) -> Row:
    """Add passages to a collection in PostgreSQL until there are so many, build the graph anew, and search it."""
    import psycopg

    retriever = open_collection(url, "growth")
    corpus: Any = retriever._corpus
    server = corpus.server
    graph_above, server._graph_above = server._graph_above, size
    begin = len(retriever)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP INDEX IF EXISTS {server._table}_graph")
        start, used, batch = time.perf_counter(), time.process_time(), []
        for n, passage in enumerate(read_passages(folder, size)):
            batch += [passage] if n >= begin else []
            if batch and (len(batch) == BATCH or n == size - 1):
                retriever.update(add=batch)
                print(f"{n + 1:,} passages, {time.perf_counter() - start:.0f} s", flush=True)
                batch = []
        row: Row = {"added": size - begin, "fill_s": round(time.perf_counter() - start, 1)}
        row["client_cpu_s"] = round(time.process_time() - used, 1)
        start = time.perf_counter()
        if size > graph_above:
            server._build_graph(size)
        row["graph_s"] = round(time.perf_counter() - start, 1)
        connection.execute("VACUUM ANALYZE")
        sizes = "SELECT sum({}) FROM pg_class WHERE relname LIKE 'meve_corp%' AND relkind = '{}'"
        ((total,),) = connection.execute(sizes.format("pg_total_relation_size(oid)", "r")).fetchall()
        ((graph,),) = connection.execute(sizes.format("pg_relation_size(oid)", "i").replace("%'", "%graph'")).fetchall()
    row |= {"bytes": int(total), "graph_bytes": int(graph or 0), **search(retriever, folder, time.perf_counter)}
    row["resident_mib"] = resident()
    retriever.close()
    return row


def search(retriever: Retriever, folder: Path, clock: Callable[[], float]) -> Row:
    """Return the times of both searches, in milliseconds, and the share of questions whose passage is found."""
    questions = make_questions(folder)
    row: Row = {}
    for source in retriever._corpus.sources(retriever.config, counted=True):
        times, found = [], 0
        for text, passage_id in questions:
            query = Query(text=text, vector=retriever.embedder.embed_query(text))
            start = clock()
            hits = source.search(query, K)
            times.append(1_000 * (clock() - start))
            found += passage_id in {hit.id for hit in hits}
        row |= describe(source.name, times) | {f"{source.name}_found": found / len(questions)}
    return row


def search_vectors(kind: Any, size: int) -> Row:
    """Build an index of synthetic vectors, and search it: its ten best against the ten best of all."""
    index = make_dense(kind, DIMENSION, size)
    drawn = np.random.default_rng(7)
    centres = drawn.standard_normal((CENTRES, DIMENSION), dtype=np.float32)
    queries = draw_vectors(drawn, centres, QUESTIONS)
    best, rows = start_best(QUESTIONS, 10)
    row: Row = {"cpu_s": 0.0}
    time_calls(index, "add", row, "cpu_s")
    for first in range(0, size, 100_000):
        vectors = draw_vectors(drawn, centres, min(100_000, size - first))
        index.add(np.arange(first, first + len(vectors)), vectors)
        best, rows = keep_best(best, rows, queries @ vectors.T, first)
        print(f"{first + len(vectors):,} vectors, {row['cpu_s']:.0f} s, {anonymous()} MiB", flush=True)
    del vectors
    row |= {"cpu_s": round(row["cpu_s"], 1), "anonymous_mib": anonymous()}
    times, found = [], 0
    for query, true in zip(queries, rows.tolist(), strict=True):
        used = time.process_time()
        hits, _ = index.search(query, 10)
        times.append(1_000 * (time.process_time() - used))
        found += len(set(hits.tolist()) & set(true))
    return row | describe("dense", times) | {"recall": found / rows.size, "resident_mib": resident()}


def start_best(queries: int, k: int) -> tuple[Any, Any]:
    """Return the scores and the rows of the best of each query before any is known, both of shape (queries, k)."""
    return np.full((queries, k), -np.inf, dtype=np.float32), np.zeros((queries, k), dtype=np.int64)


def keep_best(best: Any, rows: Any, scores: Any, first: int) -> tuple[Any, Any]:
    """Return the best of those before and of the scores, shape (queries, n), of rows from `first` on."""
    new = np.broadcast_to(np.arange(first, first + scores.shape[1]), scores.shape)
    scores, every = np.hstack([best, scores]), np.hstack([rows, new])
    top = np.argpartition(-scores, best.shape[1] - 1, axis=1)[:, : best.shape[1]]
    return np.take_along_axis(scores, top, axis=1), np.take_along_axis(every, top, axis=1)


def draw_vectors(drawn: np.random.Generator, centres: Any, count: int) -> Any:
    """Return random vectors around the centres, of length 1."""
    vectors = centres[drawn.integers(0, len(centres), count)]
    vectors += drawn.standard_normal(vectors.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def describe(name: str, times: list[float]) -> Row:
    """Return the median and the 95th percentile."""
    middle, late = np.percentile(times, (50, 95))
    return {f"{name}_p50": round(float(middle), 2), f"{name}_p95": round(float(late), 2)}


def resident() -> int:
    """Return the memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def anonymous() -> int:
    """Return the memory of this process that belongs to no file, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) >> 10


if __name__ == "__main__":
    main()
