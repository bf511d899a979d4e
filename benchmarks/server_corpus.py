"""Gold passages among the candidates of a corpus in PostgreSQL or Qdrant, beside the embedded one.

    python -m benchmarks.server_corpus --data DATA --url postgresql://… --url qdrant://… [--sets scifact] [--merge]

Recall is the share of a question's gold passages among the 20 candidates of each source, and of both together. The
times are medians of a search with its filter and transport, in milliseconds. `--merge` makes one corpus of all sets, so
that PostgreSQL searches a graph.
"""

import argparse
import time
import uuid
from pathlib import Path

import numpy as np

from benchmarks.lexical_agreement import load_set
from meve import Passage, Retriever
from meve.components.embedders import resolve_embedder
from meve.ports import Embedder
from meve.testing.fakes import OverlapVerifier
from meve.types import FloatArray, Query, Similarity

SETS = ("hotpotqa", "nfcorpus", "scifact")
K = 20

Questions = list[tuple[str, set[str]]]


class Remembered:
    """An embedder that embeds each passage once."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.name, self.dimension = inner.name, inner.dimension
        self.similarity: Similarity = inner.similarity
        self._known: dict[str, FloatArray] = {}

    def embed_query(self, text: str) -> FloatArray:
        """Embed one query, shape (d,)."""
        return self._inner.embed_query(text)

    def embed_passages(self, texts: list[str]) -> FloatArray:
        """Embed passages, shape (n, d)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known.update(zip(new, self._inner.embed_passages(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def main() -> None:
    """Print a line for each set and corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--url", action="append", default=[], help="a server; may be repeated")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--merge", action="store_true", help="one corpus of all sets")
    parser.add_argument("--questions", type=int, default=300, help="the most questions of a set")
    parser.add_argument("--embedder", default="minilm")
    arguments = parser.parse_args()
    embedder = Remembered(resolve_embedder(arguments.embedder))
    sets = {name: read_set(arguments.data, name, arguments.questions) for name in arguments.sets}
    if arguments.merge:
        sets = {"merged": ([p for each, _ in sets.values() for p in each], [q for _, qs in sets.values() for q in qs])}
    print(f"{'set':<10}{'passages':>9}  {'corpus':<12}{'add s':>7}" + "".join(
        f"{name + ' ' + what:>15}" for name in ("dense", "lexical") for what in ("recall", "ms")
    ) + f"{'both recall':>14}")  # fmt: skip
    for name, (passages, questions) in sets.items():
        vectors = {text: embedder.embed_query(text) for text, _ in questions}
        embedder.embed_passages([passage.content for passage in passages])
        for url in ("", *arguments.url):
            options = {"embedder": embedder, "verifier": OverlapVerifier()}
            retriever = Retriever.over(url, collection=f"bench {uuid.uuid4()}", **options) if url else (
                Retriever.empty(**options)
            )  # fmt: skip
            started = time.perf_counter()
            for start in range(0, len(passages), 10_000):
                retriever.update(add=passages[start : start + 10_000])
            added = time.perf_counter() - started
            by_source, both = measure(retriever, questions, vectors)
            line = "".join(f"{share:>15.3f}{ms:>15.1f}" for share, ms in by_source)
            corpus = url.partition(":")[0] or "embedded"
            print(f"{name:<10}{len(passages):>9,}  {corpus:<12}{added:>7.0f}{line}{both:>14.3f}", flush=True)
            retriever.close()


def measure(
    retriever: Retriever, questions: Questions, vectors: dict[str, FloatArray]
) -> tuple[list[tuple[float, float]], float]:
    """Return recall and median milliseconds of each source, and the recall of both together."""
    sources = retriever._corpus.sources(retriever.config, counted=True)
    shares: list[list[float]] = [[], []]
    times: list[list[float]] = [[], []]
    both: list[float] = []
    for text, gold in questions:
        union: set[str] = set()
        for n, source in enumerate(sources):
            started = time.perf_counter()
            ids = {hit.id for hit in source.search(Query(text=text, vector=vectors[text]), K)}
            times[n].append((time.perf_counter() - started) * 1e3)
            shares[n].append(len(gold & ids) / len(gold))
            union |= ids
        both.append(len(gold & union) / len(gold))
    by_source = [(float(np.mean(share)), float(np.median(ms))) for share, ms in zip(shares, times, strict=True)]
    return by_source, float(np.mean(both))


def read_set(data: Path, name: str, most: int) -> tuple[list[Passage], Questions]:
    """Return the passages of a set and its questions with the ids of their gold passages."""
    ids, texts, questions = load_set(data / name)
    passages = [Passage(id=f"{name} {i}", text=text) for i, text in zip(ids, texts, strict=True) if text.strip()]
    return passages, [(text, {f"{name} {i}" for i in gold}) for text, gold in questions[:most]]


if __name__ == "__main__":
    main()
