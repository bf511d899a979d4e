"""Continues the training of the verifier on near misses, documentation, written texts, and a sample of the mixture.

    python -m recipes.verifier.further --data DATA --work WORK [--base MODEL] [--faq FOLDER] [--round ROUND] [--seed N]

MODEL is a folder of weights for torch, by default those of the verifier that ships, written to WORK/base. What
`mixture` writes is made in WORK unless it is there. Writes WORK/further.jsonl (the examples), WORK/further (the trained
model) and WORK/further-mean, the mean of its weights and MODEL's. A second run with another seed and a folder of its
own makes other examples. The model that ships came from `--round conversations --seed 45` and, as MODEL, the
weights of the previous one.

It trains on a GPU where torch has one, else on the CPU, and writes a checkpoint every 100 steps: the same command
resumes an interrupted training. A CPU without bfloat16 (`lscpu` names neither `avx512_bf16` nor `amx_bf16`) needs
`--float32`.

For examples of the mixture the target is the mean of the label and of the probability that the models that ship
estimate from logit and cosine. So what the verifier has learned stays, and it learns again what its parent knew: with
the labels alone the AUC of HotpotQA and 2WikiMultihopQA fell by 0.025 and 0.047.
Source of such targets: Hinton et al., Distilling the knowledge in a neural network (2015).
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meve.calibration.fitting import raw_scores
from meve.components._shipped_models import find_fitted_models
from meve.components.embedders import resolve_embedder
from meve.components.verifiers import load_verifier
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.training import TrainingConfig, fine_tune
from meve.training.onnx_dequantize import dequantize_onnx
from recipes.verifier import (
    context,
    contrasts,
    conversations,
    documentation,
    exchanged_details,
    mixture,
    near_misses,
    pages,
    whole_documents,
)
from recipes.verifier.examples import Example, pair_of, write
from recipes.verifier.splits import SEED
from recipes.verifier.train import average

CONFIG = TrainingConfig(
    epochs=1, batch_size=32, learning_rate=5e-5, warmup=0.05, max_length=320, dropout=0.0, frozen_layers=1, bf16=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of examples of a round, at most."""

    invented: int
    """Questions about invented subjects."""
    spans: int
    unanswerable: int
    documentation: int
    """Pairs about documentation."""
    known: Mapping[str, int]
    """Examples of questions with known evidence, by set."""
    rest: int
    """Examples of the other sets of the mixture."""
    pages: int
    """Examples of the pages."""
    contrasts: int
    """Examples of passages that differ in a detail."""
    whole_documents: int = 0
    """Examples of whole small documents."""
    conversations: int = 0
    """Examples of conversations."""


ROUNDS = {
    "documentation": Sizes(
        invented=4_000, spans=600, unanswerable=1_500, documentation=16_000, rest=9_000, pages=0, contrasts=0,
        known={"hotpotqa": 6_000, "2wiki": 4_000, "2wiki_made": 3_000, "nq_open": 4_000},
    ),
    "pages": Sizes(
        invented=1_000, spans=200, unanswerable=800, documentation=3_000, rest=3_000, pages=60_000, contrasts=0,
        known={"hotpotqa": 2_500, "2wiki": 1_500, "2wiki_made": 1_000, "nq_open": 1_500},
    ),
    "contrasts": Sizes(
        invented=330, spans=130, unanswerable=530, documentation=9_000, rest=2_000, pages=6_000, contrasts=21_000,
        known={"hotpotqa": 2_300, "2wiki": 1_000, "2wiki_made": 530, "nq_open": 1_000},
    ),
    "whole_documents": Sizes(
        invented=330, spans=130, unanswerable=530, documentation=9_000, rest=2_000, pages=9_000, contrasts=9_000,
        whole_documents=12_000, known={"hotpotqa": 2_300, "2wiki": 1_000, "2wiki_made": 530, "nq_open": 1_000},
    ),
    "references": Sizes(
        invented=330, spans=130, unanswerable=530, documentation=9_000, rest=2_000, pages=5_000, contrasts=5_000,
        whole_documents=24_000, known={"hotpotqa": 2_300, "2wiki": 1_000, "2wiki_made": 530, "nq_open": 1_000},
    ),
    "conversations": Sizes(
        invented=330, spans=130, unanswerable=530, documentation=4_500, rest=2_000, pages=3_000, contrasts=3_500,
        whole_documents=8_000, known={"hotpotqa": 2_300, "2wiki": 1_000, "2wiki_made": 530, "nq_open": 1_000},
        conversations=40_000,
    ),
}  # fmt: skip


def main() -> None:
    """Make the examples, train, and average with the start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--base", type=Path, help="a folder of weights for torch; by default the shipped verifier's")
    parser.add_argument("--faq", type=Path, help="a folder with unpacked Debian packages that hold FAQs")
    parser.add_argument("--round", choices=ROUNDS, default="pages")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--share", type=float, default=0.5, help="the share of the new weights in the mean, 0 to 1")
    parser.add_argument("--float32", action="store_true", help="for processors without bfloat16, where it is faster")
    given = parser.parse_args()
    base = given.base or dequantize_onnx(VERIFIER_FOLDER, given.work / "base")
    mixture.make_once(given.data, given.work)
    file = given.work / "further.jsonl"
    if not file.is_file():
        write(make_examples(given.data, given.work, given.faq, ROUNDS[given.round], given.seed), file)
    examples = list(Example.read(file))
    for (name, kind), count in sorted(Counter((e.set, e.kind) for e in examples).items()):
        print(f"  {name:24} {kind:14} {count:7,}")
    started = time.monotonic()

    def report(done: int, steps: int) -> None:
        if done % 20 == 0:
            print(f"step {done:,} of {steps:,} after {time.monotonic() - started:.0f} s", flush=True)

    pairs = [pair_of(example) for example in examples]
    targets = [float(e.relevant) if e.target is None else e.target for e in examples]
    config = replace(CONFIG, seed=given.seed, bf16=not given.float32)
    trained = fine_tune(base, pairs, given.work / "further", config, report, targets=targets)
    average([base, trained], given.work / "further-mean", [1 - given.share, given.share])


def make_examples(
    data: Path, work: Path, faq: Path | None, sizes: Sizes, seed: int, *, targets: bool = True
) -> list[Example]:
    """Return all examples in random order, a share of the passages amid other text.

    With `targets`, those of the mixture have the mean of the label and of today's probability as target.
    """
    folder, rng = data / "train", random.Random(f"{seed}/further")
    manuals = list(documentation.examples(folder, seed, faq))
    new = [
        *near_misses.invented(sizes.invented, seed),
        *near_misses.spans(sizes.spans, seed),
        *exchanged_details.exchanged(folder, seed),
        *exchanged_details.unanswerable(folder, sizes.unanswerable, seed),
        *rng.sample(manuals, min(sizes.documentation, len(manuals))),
    ]
    for made, count in (
        (pages.examples, sizes.pages),
        (contrasts.examples, sizes.contrasts),
        (whole_documents.examples, sizes.whole_documents),
        (conversations.examples, sizes.conversations),
    ):
        written = [e for e in made(seed) if e.part == "train"] if count else []
        new += rng.sample(written, min(count, len(written)))
    tested = {e.passage for e in Example.read(work / "test.jsonl") if e.relevant}
    mixed = [*Example.read(work / "train.jsonl"), *Example.read(work / "made.jsonl")]
    replayed = replay(mixed, tested, sizes, rng)
    if targets:
        replayed = with_targets(replayed)
    sentences = context.filler([*(e.passage for e in manuals), *(e.passage for e in replayed)])
    examples = list(context.wrapped([*new, *replayed], sentences, seed))
    rng.shuffle(examples)
    return examples


def replay(examples: Iterable[Example], tested: set[str], sizes: Sizes, rng: random.Random) -> list[Example]:
    """Return a sample of the mixture without relevant passages of test questions."""
    once = [e for e in dict.fromkeys(examples) if e.passage not in tested]
    chosen: list[Example] = []
    for name, count in sizes.known.items():
        of_set = [e for e in once if e.set == name]
        chosen += rng.sample(of_set, min(count, len(of_set)))
    chosen += rng.sample([e for e in once if e.set not in (*sizes.known, "squad2_unanswerable")], sizes.rest)
    return chosen


def with_targets(examples: Sequence[Example]) -> list[Example]:
    """Return the examples, each with the mean of its label and of the probability from all evidence as target."""
    verifier, embedder = load_verifier(), resolve_embedder("minilm")
    evidence = find_fitted_models(verifier.name, verifier.calibration.to_dict(), embedder.name).evidence
    assert evidence is not None, "the models that ship have an evidence model"
    queries, passages = (sorted({getattr(e, text) for e in examples}) for text in ("query", "passage"))
    vectors = {text: vector for texts in (queries, passages)
               for text, vector in zip(texts, embedder.embed_passages(texts), strict=True)}  # fmt: skip
    cosines = np.array([vectors[e.query] @ vectors[e.passage] for e in examples])
    logits = raw_scores(verifier, [pair_of(e) for e in examples])
    unknown = np.full(len(examples), np.nan)
    known = evidence.calibration.apply(evidence.sums({"logit": logits, "cosine": cosines, "keywords": unknown}))
    return [replace(e, target=(e.relevant + float(p)) / 2) for e, p in zip(examples, known, strict=True)]


if __name__ == "__main__":
    main()
