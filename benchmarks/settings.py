"""Compare settings of a retrieval with the default ones, on the same questions.

    python -m benchmarks.settings --data DATA --cache FOLDER [--sets musique,nq_open] candidates=10 candidates=50 \
        packing=sentences packing=sentences,sentence_threshold=0.2

Each argument is a variant: settings by name, separated by commas. Prints for each, as means over the questions, the
recall of gold passages (and its difference from the default with the 95 % interval, bootstrap over questions), that of
gold sentences, tokens, the passages that the verifier reads, those verified, and the share of all candidates of both
whose verdict is the same. FOLDER holds embeddings. A passage is read once for all variants.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.equal_tokens import with_indexes
from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.components.verifiers import load_verifier
from meve.evaluation._model_caches import DiskCachedEmbedder, SharedVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import SETS, read_set
from meve.evaluation.experiments._experiment import CACHE, QUESTIONS, SEED
from meve.evaluation.systems import IndexedPassages
from meve.evaluation.types import Question, SharedComponents, normalize_space
from meve.pipeline.config import RetrieverConfig


def parse_variant(text: str) -> RetrieverConfig:
    """Return the settings that a variant names: `hops=2,packing=sentences`; none for an empty text."""
    settings = {}
    for name, _, value in (part.partition("=") for part in text.split(",") if part):
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return RetrieverConfig(**settings)


def measure(indexed: IndexedPassages, question: Question, configs: Iterable[RetrieverConfig]) -> list[list[float]]:
    """Return a row for each configuration: recalls, tokens, passages read, verified, verdicts shared with the first."""
    rows: list[list[float]] = []
    first: dict[str, bool] = {}
    for config in configs:
        context = indexed.retriever.retrieve(question.text, config=config)
        text = normalize_space(context.text)
        found = [normalize_space(sentence.text) in text for sentence in question.sentences]
        kept = question.gold.keys() & {p.passage.id for p in context.passages}
        verdicts = {c.id: c.verified for c in context.trace.candidates}
        first = first or verdicts
        same = [verdicts.get(i, False) == first.get(i, False) for i in verdicts.keys() | first.keys()]
        rows.append([
            len(kept) / len(question.gold),
            float(np.mean(found)) if found else np.nan,
            context.tokens,
            sum("verifier" in c.scores for c in context.trace.candidates),
            sum(verdicts.values()),
            float(np.mean(same)),
        ])  # fmt: skip
    return rows


def main() -> None:
    """Print a line for each set and variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("variants", nargs="+")
    given = parser.parse_args()
    variants = {text: parse_variant(text) for text in ("", *given.variants)}
    components = SharedComponents(
        embedder=DiskCachedEmbedder(resolve_embedder("minilm"), given.cache / CACHE),
        verifier=SharedVerifier(load_verifier()),
        tokens=resolve_tokens(None),
    )
    random = np.random.default_rng(SEED)
    for name in given.sets.split(","):
        dataset = read_set(name, given.data)
        questions = sample_questions(dataset.questions, given.questions, SEED)
        rows = np.array([
            measure(indexed, question, variants.values())
            for indexed, question in with_indexes(dataset, questions, components)
        ])  # fmt: skip
        drawn = random.integers(0, len(rows), (2_000, len(rows)))
        for n, variant in enumerate(variants):
            gains = rows[:, n, 0] - rows[:, 0, 0]
            low, high = np.percentile(gains[drawn].mean(axis=1), [2.5, 97.5])
            recall, sentences, tokens, read, verified, same = rows[:, n].mean(axis=0)
            print(f"{name}, {variant or 'default'}: recall {recall:.3f} ({gains.mean():+.3f}, {low:+.3f} to "
                  f"{high:+.3f}), sentences {sentences:.3f}, tokens {tokens:.0f}, read {read:.1f}, "
                  f"verified {verified:.2f}, same verdicts {same:.4f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
