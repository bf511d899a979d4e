"""What the five phases cost without the models, against corpus size: each phase's p50, p95 and p99, and memory.

A fake embedder and a fake tokenizer stand in for the models, so that what is timed is MeVe: search, verdicts (the
calibrated cosine, over stored vectors), fallback, redundancy, budget, trace. The fake embedder's own time is left out.
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
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from meve._extras import needed, require
from meve.components.verifiers.cosine import CosineVerifier, shipped_calibration
from meve.errors import EvaluationError
from meve.evaluation.results import versions
from meve.evaluation.run import Progress
from meve.evaluation.synthetic import DirectionEmbedder, Language
from meve.pipeline.trace import Trace
from meve.retrieval.retriever import Retriever
from meve.types import Passage

Kind: TypeAlias = Literal["flat", "hnsw", "ivf"]

SIZES = (10_000, 30_000, 100_000)
FLAT_TO = 100_000
"""Beyond this, comparing with every vector is too slow to be of interest."""
DIMENSION, LENGTH, QUERIES, QUERY_WORDS = 384, 40, 300, 8
NEEDS = {"psutil": "bench"}
PASSES = 5
"""How often all questions are asked; the figures are those of the middle pass."""
NEVER_ENOUGH = 100
"""Of `min_verified`, so that the fallback runs for every query, and every phase is in every figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One index of one size."""

    kind: Kind
    passages: int
    build_s: float
    """Seconds for adding all passages, of which the next three are part."""
    embed_s: float
    dense_s: float
    lexical_s: float
    memory_gib: float
    """What the process holds more than before: passages, vectors, words, indexes."""
    ms: dict[str, tuple[float, float, float]]
    """p50, p95 and p99 of the whole (`all`) and of each phase."""
    recall_at_20: float
    """The share of the true 20 nearest that the dense index finds, over 100 questions."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read what `asdict` and JSON made of one."""
        return cls(**{**data, "ms": {name: tuple(values) for name, values in data["ms"].items()}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What to measure, and where the results go."""

    to: Path
    sizes: tuple[int, ...] = SIZES
    """With HNSW, and up to `FLAT_TO` with a flat index as well."""
    ivf: tuple[int, ...] = ()
    """With an inverted file."""


def speed(wanted: Speed, progress: Progress | None = None) -> list[Measured]:
    """Measure each size in a process of its own, so that its memory can be told; sizes that are there aren't again.

    Raises:
        EvaluationError: the folder can't be used, or holds figures of other versions; or a size that isn't at least 1.
        MissingExtraError: psutil isn't installed.
    """
    require("measuring memory", NEEDS)
    jobs: list[tuple[Kind, int]] = [("hnsw", size) for size in wanted.sizes]
    jobs += [("flat", size) for size in wanted.sizes if size <= FLAT_TO]
    jobs += [("ivf", size) for size in wanted.ivf]
    if not jobs or min(size for _, size in jobs) < 1:
        raise EvaluationError(f"sizes are {wanted.sizes} and {wanted.ivf}: give whole numbers of at least 1")
    try:
        wanted.to.mkdir(parents=True, exist_ok=True)
        found = []
        for n, (kind, size) in enumerate(jobs):
            if progress:
                progress(f"{kind} {size:,}", n, len(jobs))
            found.append(_fetched(kind, size, wanted.to))
    except OSError as cause:
        raise EvaluationError(f"{wanted.to} can't be used for results: {cause.strerror or cause}") from cause
    if progress:
        progress("done", len(jobs), len(jobs))
    return found


def _fetched(kind: Kind, size: int, folder: Path) -> Measured:
    kept = folder / f"speed-{kind}-{size}.json"
    if kept.exists():
        try:
            data = json.loads(kept.read_text(encoding="utf-8"))
            measured = Measured.from_dict(data["measured"])
        except (ValueError, TypeError, KeyError) as cause:
            raise EvaluationError(f"{kept} is damaged ({cause}): remove it, and it's measured again") from cause
        if (data.get("versions"), data.get("cores")) != (versions(), os.cpu_count()):
            raise EvaluationError(
                f"{kept} was measured with other versions, or on another number of cores: remove it, or give another "
                "--to"
            )
        return measured
    command = [sys.executable, "-m", "meve.evaluation.experiments.speed", kind, str(size)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        why = ran.stderr.strip().rpartition("\n")[2] or f"its process ended with {ran.returncode}"
        raise EvaluationError(f"measuring {kind} at {size:,} passages failed: {why}")
    made = Measured.from_dict(json.loads(ran.stdout))
    fresh = kept.with_name(f"{kept.name}.new")
    data = {"versions": versions(), "cores": os.cpu_count(), "measured": asdict(made)}
    fresh.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    fresh.replace(kept)
    return made


def measure(kind: Kind, size: int) -> Measured:
    """Build one index and ask it, in this process.

    Raises:
        MissingExtraError: psutil isn't installed.
    """
    language = Language(dimension=DIMENSION)
    embedder = DirectionEmbedder(language)
    drawn = language.draw(size, LENGTH, seed=1)
    before = _memory()
    verifier = CosineVerifier(embedder, shipped_calibration())
    retriever = Retriever.empty(embedder=embedder, verifier=verifier, tokens=_words, dense=kind)
    built = _build(retriever, language.texts(drawn))
    questions = language.queries(drawn, QUERIES, QUERY_WORDS, seed=2)
    passes = [[retriever.retrieve(q, min_verified=NEVER_ENOUGH).trace for q in questions] for _ in range(PASSES)]
    traces = sorted(passes, key=lambda traces: statistics.median(t.ms for t in traces))[PASSES // 2]
    return Measured(
        kind=kind,
        passages=size,
        **built,
        memory_gib=round((_memory() - before) / 2**30, 3),
        ms=_percentiles(traces),
        recall_at_20=_recall(retriever, embedder, questions),
    )


def _words(text: str) -> int:
    return len(text.split())


def _percentiles(traces: Sequence[Trace]) -> dict[str, tuple[float, float, float]]:
    times = {"all": [t.ms - t.embed_ms for t in traces]}
    times |= {phase.name: [t.phases[n].ms for t in traces] for n, phase in enumerate(traces[0].phases)}
    return {
        name: cast(tuple[float, float, float], tuple(np.percentile(values, [50, 95, 99]).round(3).tolist()))
        for name, values in times.items()
    }


def _build(retriever: Retriever, texts: Sequence[str]) -> dict[str, float]:
    """Add the passages, with the time that each part of it took."""
    spent = {"embed_s": 0.0, "dense_s": 0.0, "lexical_s": 0.0}
    corpus = retriever._corpus
    timed = (
        (retriever.embedder, "embed_passages", "embed_s"),
        (corpus.dense, "add", "dense_s"),
        (corpus.primary_lexical, "add", "lexical_s"),
    )
    for owner, method, name in timed:
        setattr(owner, method, _clocked(getattr(owner, method), spent, name))
    start = time.perf_counter()
    retriever.update(add=[Passage(id=f"{n:07d}", text=text) for n, text in enumerate(texts)])
    whole = time.perf_counter() - start
    for owner, method, _ in timed:
        delattr(owner, method)
    return {"build_s": round(whole, 2), **{name: round(seconds, 2) for name, seconds in spent.items()}}


def _clocked(call: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    def wrapper(*args: Any) -> Any:  # noqa: ANN401 - whatever the method takes and gives
        start = time.perf_counter()
        try:
            return call(*args)
        finally:
            spent[name] += time.perf_counter() - start

    return wrapper


def _recall(retriever: Retriever, embedder: DirectionEmbedder, questions: Sequence[str]) -> float:
    dense = retriever._corpus.dense
    rows = np.asarray(sorted(retriever._corpus.entries), dtype=np.int64)
    queries = np.stack([embedder.embed_query(q) for q in questions[:100]])
    best = np.full((len(queries), min(20, len(rows))), -2.0, dtype=np.float32)
    for start in range(0, len(rows), 50_000):
        scores = queries @ dense.vectors(rows[start : start + 50_000]).T
        best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -best.shape[1] :]
    floor = best[:, 0] - 1e-5
    found = [int((dense.search(q, 20)[1] >= floor[n]).sum()) for n, q in enumerate(queries)]
    return round(sum(found) / best.size, 4)


def _memory() -> int:
    with needed("measuring memory", NEEDS):
        import psutil
    return int(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure(cast(Kind, sys.argv[1]), int(sys.argv[2])))) + "\n")
