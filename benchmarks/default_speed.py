"""Times a default query against settings that score every candidate, interleaved, without cached scores.

python -m benchmarks.default_speed --data DATA --cache FOLDER hotpotqa nq_open
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from meve import Retriever
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


def main() -> None:
    """Print for each set and setting the median milliseconds, and the median ratio to the first setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for embeddings")
    parser.add_argument("sets", nargs="+")
    given = parser.parse_args()
    for name in given.sets:
        chosen = read_set(name, given.data)
        retrievers = {
            embedder: Retriever.from_passages(
                chosen.passages,
                embedder=DiskCachedEmbedder(resolve_embedder(embedder), given.cache / "embeddings.sqlite"),
                verifier=load_shipped_verifier().with_cache(0),
            )
            for embedder in ("static", "minilm")
        }
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for question in sample_questions(chosen.questions, QUESTIONS, 42):
            for way, (embedder, options) in WAYS.items():
                started = time.perf_counter()
                retrievers[embedder].retrieve(question.text, **options)
                seconds[way].append(time.perf_counter() - started)
        first = np.array(next(iter(seconds.values())))
        for way, values in seconds.items():
            print(f"{name}, {way}: {1000 * np.median(values):.0f} ms, {np.median(np.array(values) / first):.2f}")


if __name__ == "__main__":
    main()
