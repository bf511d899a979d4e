"""Times a default query against settings that score every candidate, or against an earlier version; interleaved.

    python -m benchmarks.default_speed --data DATA --cache FOLDER hotpotqa nq_open
    python -m benchmarks.default_speed --data DATA --against CHECKOUT hotpotqa nq_open

No scores are cached. CHECKOUT is a clone of this repository at an earlier commit. It and this one answer in a process
each, with the defaults of their versions, and only one of the two works at a time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meve import Passage, Retriever
from meve.components.embedders import resolve_embedder
from meve.components.verifiers._shipped import load_shipped_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set

WAYS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "static, all scored": ("static", {"exact": True}),
    "all scored": ("minilm", {"exact": True}),
    "default": ("minilm", {}),
    "sentences": ("minilm", {"packing": "sentences"}),
    "exact=False": ("minilm", {"exact": False}),
}
QUESTIONS = 40
HERE = Path(__file__).resolve().parents[1]
WORKER = """
import json, sys, time
from meve import Passage, Retriever
passages = [Passage(id=i, text=text, title=title) for i, text, title in json.load(open(sys.argv[1]))]
retriever = Retriever.from_passages(passages)
print(flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    retriever.retrieve(json.loads(line))
    print(time.perf_counter() - started, flush=True)
"""
"""Answers questions with the defaults of whichever version is on the path; the first line says that it is ready."""


def main() -> None:
    """Print for each set and setting the median milliseconds, and the median ratio to the first setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="a folder for embeddings")
    parser.add_argument("--against", type=Path, help="a clone at an earlier commit")
    parser.add_argument("sets", nargs="+")
    given = parser.parse_args()
    if (given.cache is None) == (given.against is None):
        parser.error("give either --cache or --against")
    for name in given.sets:
        chosen = read_set(name, given.data)
        asked = [q.text for q in sample_questions(chosen.questions, QUESTIONS, 42)]
        if given.against is not None:
            report(name, time_versions(chosen.passages, asked, {"earlier": given.against, "this one": HERE}))
            continue
        retrievers = {
            embedder: Retriever.from_passages(
                chosen.passages,
                embedder=DiskCachedEmbedder(resolve_embedder(embedder), given.cache / "embeddings.sqlite"),
                verifier=load_shipped_verifier().with_cache(0),
            )
            for embedder in ("static", "minilm")
        }
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for question in asked:
            for way, (embedder, options) in WAYS.items():
                started = time.perf_counter()
                retrievers[embedder].retrieve(question, **options)
                seconds[way].append(time.perf_counter() - started)
        report(name, seconds)


def time_versions(
    passages: Sequence[Passage], questions: Sequence[str], versions: Mapping[str, Path]
) -> Mapping[str, Sequence[float]]:
    """Return the seconds of each question in each version; both index the passages anew."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as texts:
        json.dump([(p.id, p.text, p.title) for p in passages], texts)
        texts.flush()
        workers = {
            way: subprocess.Popen(
                [sys.executable, "-c", WORKER, texts.name],
                env={**os.environ, "PYTHONPATH": str(folder / "core")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for way, folder in versions.items()
        }
        for worker in workers.values():
            worker.stdout.readline()
        rows = [ask(workers.values(), question) for question in questions]
    return dict(zip(workers, zip(*rows, strict=True), strict=True))


def ask(workers: Iterable[subprocess.Popen[str]], question: str) -> Sequence[float]:
    """Return the seconds that each worker takes for the question, one after another."""
    seconds = []
    for worker in workers:
        print(json.dumps(question), file=worker.stdin, flush=True)
        seconds.append(float(worker.stdout.readline()))
    return seconds


def report(name: str, seconds: Mapping[str, Sequence[float]]) -> None:
    """Print the medians, and the median ratio of each question to the first way."""
    first = np.array(next(iter(seconds.values())))
    for way, values in seconds.items():
        print(f"{name}, {way}: {1000 * np.median(values):.0f} ms, {np.median(np.array(values) / first):.2f}")


if __name__ == "__main__":
    main()
