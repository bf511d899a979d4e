"""The speed experiment: p50, p95 and p99 of each phase without the models, and memory, against corpus size.

A fake embedder and a fake tokenizer replace the models, so that only MeVe is timed: search, verification by the
calibrated cosine over stored vectors, fallback, redundancy, budget and trace. The fake embedder's time is excluded.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from meve._extras import require, require_imports
from meve.components.verifiers.cosine import CosineVerifier, load_shipped_calibration
from meve.errors import EvaluationError
from meve.evaluation._journal import write_atomically
from meve.evaluation._synthetic_corpus import DirectionEmbedder, SyntheticLanguage
from meve.evaluation.results import collect_versions
from meve.evaluation.types import parse_dataclass
from meve.pipeline.config import Overrides
from meve.pipeline.trace import Trace
from meve.retrieval._corpus import Corpus
from meve.retrieval.retriever import Retriever
from meve.types import Passage, StageProgress

MeasuredIndex: TypeAlias = Literal["flat", "hnsw", "ivf"]

SIZES = (10_000, 30_000, 100_000)
FLAT_MAX = 100_000
"""The largest flat index that is measured; comparing with more vectors is too slow to be of interest."""
DIMENSION, LENGTH, QUERIES, QUERY_WORDS = 384, 40, 300, 8
NEEDS = {"psutil": "bench"}
PASSES = 5
"""The number of passes over all questions; the pass with the median time is reported."""
ALWAYS_FALL_BACK = 100
"""A `min_verified` that no query reaches, so that every phase runs for every query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedResult:
    """The figures of one index at one size."""

    kind: MeasuredIndex
    passages: int
    build_s: float
    """Seconds for adding all passages; the next three are parts of it."""
    embed_s: float
    dense_s: float
    lexical_s: float
    memory_gib: float
    """Memory that the process gained: passages, vectors, words and indexes."""
    ms: dict[str, tuple[float, float, float]]
    """p50, p95 and p99 of the whole (`all`) and of each phase."""
    recall_at_20: float
    """The share of the true 20 nearest that the dense index finds, over 100 questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedOptions:
    """The options of the speed experiment."""

    to: Path
    sizes: tuple[int, ...] = SIZES
    """Passages of an HNSW index; up to `FLAT_MAX`, of a flat index as well."""
    ivf: tuple[int, ...] = ()
    """Passages of an inverted-file index."""


def run_speed(options: SpeedOptions, progress: StageProgress = lambda *_: None) -> list[SpeedResult]:
    """Measure each size in a process of its own, whose memory is measured too; sizes measured before are reused.

    Raises:
        EvaluationError: the folder can't be used, or holds results of other versions; or a size is less than 1.
        MissingExtraError: psutil isn't installed.
    """
    require("measuring memory", NEEDS)
    jobs: list[tuple[MeasuredIndex, int]] = [("hnsw", size) for size in options.sizes]
    jobs += [("flat", size) for size in options.sizes if size <= FLAT_MAX]
    jobs += [("ivf", size) for size in options.ivf]
    if not jobs or min(size for _, size in jobs) < 1:
        raise EvaluationError(f"sizes must be at least 1, got {options.sizes} and {options.ivf}")
    try:
        options.to.mkdir(parents=True, exist_ok=True)
        results = []
        for n, (kind, size) in enumerate(jobs):
            progress(f"{kind} {size:,}", n, len(jobs))
            results.append(_load_or_measure(kind, size, options.to))
    except OSError as cause:
        raise EvaluationError(f"can't use {options.to} for results: {cause.strerror or cause}") from cause
    progress("done", len(jobs), len(jobs))
    return results


def _load_or_measure(kind: MeasuredIndex, size: int, folder: Path) -> SpeedResult:
    file = folder / f"speed-{kind}-{size}.json"
    if file.exists():
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            measured = parse_dataclass(SpeedResult, data["measured"])
        except (ValueError, TypeError, KeyError) as cause:
            raise EvaluationError(f"{file} is damaged ({cause}): remove it to measure again") from cause
        if (data.get("versions"), data.get("cores")) != (collect_versions(), os.cpu_count()):
            raise EvaluationError(
                f"{file} was measured with other versions or another number of cores: remove it, or choose another --to"
            )
        return measured
    command = [sys.executable, "-m", "meve.evaluation.experiments.retrieval_speed", kind, str(size)]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode:
        why = process.stderr.strip().rpartition("\n")[2] or f"its process ended with {process.returncode}"
        raise EvaluationError(f"measuring {kind} at {size:,} passages failed: {why}")
    result = parse_dataclass(SpeedResult, json.loads(process.stdout))
    data = {"versions": collect_versions(), "cores": os.cpu_count(), "measured": asdict(result)}
    write_atomically(file, json.dumps(data, indent=1) + "\n")
    return result


def measure(kind: MeasuredIndex, size: int) -> SpeedResult:
    """Build one index and query it, in this process.

    Raises:
        MissingExtraError: psutil isn't installed.
    """
    language = SyntheticLanguage(dimension=DIMENSION)
    embedder = DirectionEmbedder(language)
    drawn = language.draw(size, LENGTH, seed=1)
    before = _memory()
    verifier = CosineVerifier(embedder, load_shipped_calibration())
    retriever = Retriever.empty(embedder=embedder, verifier=verifier, tokens=_count_words, dense=kind)
    seconds = _timed_build(retriever, language.texts(drawn))
    questions = language.queries(drawn, QUERIES, QUERY_WORDS, seed=2)
    options: Overrides = {"min_verified": ALWAYS_FALL_BACK, "fill": False}
    passes = [[retriever.retrieve(q, **options).trace for q in questions] for _ in range(PASSES)]
    traces = sorted(passes, key=lambda traces: statistics.median(t.ms for t in traces))[PASSES // 2]
    return SpeedResult(
        kind=kind,
        passages=size,
        **seconds,
        memory_gib=round((_memory() - before) / 2**30, 3),
        ms=_percentiles(traces),
        recall_at_20=_recall(retriever, embedder, questions),
    )


def _count_words(text: str) -> int:
    return len(text.split())


def _percentiles(traces: Sequence[Trace]) -> dict[str, tuple[float, float, float]]:
    times = {"all": [t.ms - t.embed_ms for t in traces]}
    times |= {phase.name: [t.phases[n].ms for t in traces] for n, phase in enumerate(traces[0].phases)}
    return {
        name: cast(tuple[float, float, float], tuple(np.percentile(values, [50, 95, 99]).round(3).tolist()))
        for name, values in times.items()
    }


def _timed_build(retriever: Retriever, texts: Sequence[str]) -> dict[str, float]:
    """Add the passages; return the seconds of each part."""
    spent = {"embed_s": 0.0, "dense_s": 0.0, "lexical_s": 0.0}
    corpus = _corpus(retriever)
    methods = (
        (retriever.embedder, "embed_passages", "embed_s"),
        (corpus.dense, "add", "dense_s"),
        (corpus.primary_lexical, "add", "lexical_s"),
    )
    for owner, method, name in methods:
        setattr(owner, method, _timed(getattr(owner, method), spent, name))
    start = time.perf_counter()
    retriever.update(add=[Passage(id=f"{n:07d}", text=text) for n, text in enumerate(texts)])
    whole = time.perf_counter() - start
    for owner, method, _ in methods:
        delattr(owner, method)
    return {"build_s": round(whole, 2), **{name: round(seconds, 2) for name, seconds in spent.items()}}


def _corpus(retriever: Retriever) -> Corpus:
    assert isinstance(retriever._corpus, Corpus)
    return retriever._corpus


def _timed(call: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    def wrapper(*args: Any) -> Any:  # noqa: ANN401 - whatever the method takes and gives
        start = time.perf_counter()
        try:
            return call(*args)
        finally:
            spent[name] += time.perf_counter() - start

    return wrapper


def _recall(retriever: Retriever, embedder: DirectionEmbedder, questions: Sequence[str]) -> float:
    corpus = _corpus(retriever)
    dense, rows = corpus.dense, np.asarray(sorted(corpus.entries), dtype=np.int64)
    queries = np.stack([embedder.embed_query(q) for q in questions[:100]])
    best = np.full((len(queries), min(20, len(rows))), -2.0, dtype=np.float32)
    for start in range(0, len(rows), 50_000):
        scores = queries @ dense.vectors(rows[start : start + 50_000]).T
        best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -best.shape[1] :]
    floor = best[:, 0] - 1e-5
    hits = [int((dense.search(q, 20)[1] >= floor[n]).sum()) for n, q in enumerate(queries)]
    return round(sum(hits) / best.size, 4)


def _memory() -> int:
    with require_imports("measuring memory", NEEDS):
        import psutil
    return int(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure(cast(MeasuredIndex, sys.argv[1]), int(sys.argv[2])))) + "\n")
