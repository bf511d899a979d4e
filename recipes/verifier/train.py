"""Trains the shipped verifier on the examples that `mixture` made; run again after an interruption, it goes on.

python -m recipes.verifier.train --work WORK
"""

import argparse
import time
from pathlib import Path

from meve.parts.embedders.minilm import check_weights, minilm_folder
from meve.training import TrainingConfig, fine_tune
from meve.types import LabelledPair
from recipes.verifier.examples import Example
from recipes.verifier.splits import SEED

CONFIG = TrainingConfig(epochs=1, batch_size=32, learning_rate=6e-5, warmup=0.05, max_length=224, seed=SEED)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    check_weights(minilm_folder() / "model.safetensors")
    pairs = [
        LabelledPair(query=e.query, passage=e.passage, relevant=e.relevant) for e in Example.read(work / "train.jsonl")
    ]
    started, first = time.monotonic(), None

    def told(done: int, steps: int) -> None:
        nonlocal first
        first = done - 1 if first is None else first
        if done % 20 == 0:
            rate = (done - first) * CONFIG.batch_size / (time.monotonic() - started)
            left = (steps - done) * CONFIG.batch_size / rate / 60
            print(f"step {done:,} of {steps:,}: {rate:.1f} pairs a second, {left:.0f} minutes left", flush=True)

    print(fine_tune(minilm_folder(), pairs, work / "model", CONFIG, told))


if __name__ == "__main__":
    main()
