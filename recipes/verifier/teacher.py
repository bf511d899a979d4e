"""Trains a larger cross-encoder as a teacher, and writes its probabilities as targets for `further`.

    python -m recipes.verifier.teacher --data DATA --work WORK --base FOLDER [--round ROUND] [--examples N] [--float32]
    python -m recipes.verifier.further --data DATA --work WORK --round ROUND

FOLDER holds all-mpnet-base-v2 (Apache-2.0). The first command makes the examples of a round of `further`, trains the
teacher on the labels of N of them, and writes all of them to WORK/further.jsonl, each with the mean of its label and of
the teacher's probability as target: hits that nobody labelled and that may well answer have a target between. The
second command trains the verifier on that file. Training is resumed from its last checkpoint, and scoring from the
last block, by the same command. WORK/teacher is the trained model.

Without bfloat16 it trains on 0.8 pairs a second and core, of up to 192 tokens.
Source of such targets: Hinton et al., Distilling the knowledge in a neural network (2015).
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.training import TrainingConfig, fine_tune
from recipes.verifier import further, mixture
from recipes.verifier.examples import Example, pair_of, write
from recipes.verifier.splits import SEED

CONFIG = TrainingConfig(
    epochs=1, batch_size=16, learning_rate=3e-5, warmup=0.1, max_length=192, frozen_layers=4, bf16=True, save_every=50
)
BLOCK = 1_000
"""The number of examples that are scored between two savings."""


def main() -> None:
    """Make the examples, train the teacher and write the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True, help="the folder of the model to start from")
    parser.add_argument("--faq", type=Path, help="a folder with unpacked Debian packages that hold FAQs")
    parser.add_argument("--round", choices=further.ROUNDS, default="whole_documents")
    parser.add_argument("--examples", type=int, default=1_000_000, help="that the teacher learns from, at most")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--float32", action="store_true", help="for processors without bfloat16, where it is faster")
    given = parser.parse_args()
    mixture.make_once(given.data, given.work)
    file = given.work / "teacher.jsonl"
    if not file.is_file():
        rounds = further.ROUNDS[given.round]
        write(further.make_examples(given.data, given.work, given.faq, rounds, given.seed, targets=False), file)
    examples = list(Example.read(file))
    config = replace(CONFIG, seed=given.seed, bf16=not given.float32)
    started = time.monotonic()

    def report(done: int, steps: int) -> None:
        if done % 10 == 0:
            print(f"step {done:,} of {steps:,} after {time.monotonic() - started:.0f} s", flush=True)

    learned = [pair_of(e) for e in examples[: given.examples]]
    teacher = fine_tune(given.base, learned, given.work / "teacher", config, report)
    write(teach(examples, teacher, given.work / "teacher.scores"), given.work / "further.jsonl")


def teach(examples: list[Example], teacher: Path, file: Path) -> list[Example]:
    """Return the examples, each with the mean of its label and of the teacher's probability as target.

    The probabilities are saved to the file, block by block.
    """
    known = np.fromfile(file, dtype=np.float32) if file.is_file() else np.empty(0, dtype=np.float32)
    verifier = CrossEncoderVerifier.from_name(teacher, max_length=CONFIG.max_length)
    for start in range(len(known), len(examples), BLOCK):
        pairs = [pair_of(e) for e in examples[start : start + BLOCK]]
        logits = verifier.score_pairs([(pair.query, pair.passage) for pair in pairs])
        with file.open("ab") as scores:
            (1 / (1 + np.exp(-logits))).astype(np.float32).tofile(scores)
        print(f"{start + len(pairs):,} of {len(examples):,} scored", flush=True)
    known = np.fromfile(file, dtype=np.float32)
    return [replace(e, target=(e.relevant + float(p)) / 2) for e, p in zip(examples, known, strict=True)]


if __name__ == "__main__":
    main()
