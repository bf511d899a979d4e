"""Trains the shipped verifier on the examples that `mixture` made; run again after an interruption, it goes on.

    python -m recipes.verifier.train --work WORK

In two stages: the second begins with the model of the first, and sees the other examples. Both see every set.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from meve.parts.embedders.minilm import check_weights, minilm_folder
from meve.training import TrainingConfig, fine_tune
from recipes.verifier.examples import Example, pair_of
from recipes.verifier.splits import SEED

FIRST = TrainingConfig(epochs=1, batch_size=32, learning_rate=6e-5, warmup=0.05, max_length=160, seed=SEED)
SECOND = replace(FIRST, batch_size=16, learning_rate=8e-5, dropout=0.0)
STAGES = ((0.35, FIRST), (1.0, SECOND))
"""Which share of the examples has been seen at the end of each stage, and how it learns. The first takes hundreds of
steps to make a classifier of an embedder; the second takes more and smaller ones, and sees each
example once, so that nothing need be left out against learning by heart."""


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    check_weights(minilm_folder() / "model.safetensors")
    pairs = [pair_of(example) for example in Example.read(work / "train.jsonl")]
    base, begin = minilm_folder(), 0
    for stage, (share, config) in enumerate(STAGES, start=1):
        end, told = round(share * len(pairs)), _told(stage, config.batch_size)
        base, begin = fine_tune(base, pairs[begin:end], work / f"stage-{stage}", config, told), end
        print(f"stage {stage}: {base}", flush=True)


def _told(stage: int, batch: int) -> Callable[[int, int], None]:
    begun: list[tuple[float, int]] = []

    def told(done: int, steps: int) -> None:
        if not begun:
            begun.append((time.monotonic(), done))
        elif done % 20 == 0:
            started, first = begun[0]
            rate = (done - first) * batch / (time.monotonic() - started)
            left = (steps - done) * batch / rate / 60
            print(
                f"stage {stage}, step {done:,} of {steps:,}: {rate:.1f} pairs a second, {left:.0f} minutes left",
                flush=True,
            )

    return told


if __name__ == "__main__":
    main()
