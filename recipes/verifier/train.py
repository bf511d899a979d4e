"""Trains the shipped verifier on the examples of `mixture`; an interrupted run is resumed.

    python -m recipes.verifier.train --work WORK

Three stages each start from the previous model. The second uses all examples of questions with known evidence, and new
examples of the other sets. The third uses generated questions and claims, and a sample of the rest, without relevant
passages of test questions. WORK/model is the mean of the weights of stages two and three; `further` goes on from it.

Source of the mean: Wortsman et al., Robust fine-tuning of zero-shot models (2022), with their weight of one half.
"""

import argparse
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from meve.components.embedders.minilm import check_weights, minilm_folder
from meve.training import TrainingConfig, fine_tune
from recipes.verifier.examples import Example, pair_of
from recipes.verifier.splits import SEED

FIRST = TrainingConfig(epochs=1, batch_size=32, learning_rate=6e-5, warmup=0.05, max_length=160, seed=SEED)
SHARE = 0.35
"""The share of all examples for the first stage, which turns an embedder into a classifier."""
SECOND = replace(FIRST, batch_size=16, learning_rate=8e-5, dropout=0.0)
AGAIN = {"hotpotqa": 2, "2wiki": 4, "nq_open": 1}
"""Number of copies of the examples of questions with known evidence in the second stage."""
OTHERS = 18_000
"""Examples of other sets in the second stage that the first didn't use."""
THIRD = replace(SECOND, learning_rate=5e-5)
MADE = {"second hop": 3_000}
"""The maximum of generated examples per kind in the third stage; all of other kinds."""
KNOWN = {"hotpotqa": 3_500, "2wiki": 2_400, "nq_open": 1_800}
"""Examples of questions with known evidence in the third stage."""
REST = 5_000
"""Examples of other sets in the third stage that the first two didn't use."""


def main() -> None:
    """Train the three stages and average the last two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    work = parser.parse_args().work
    check_weights(minilm_folder() / "model.safetensors")
    base = minilm_folder()
    for stage, (examples, config) in enumerate(
        zip(select_examples(work), (FIRST, SECOND, THIRD), strict=True), start=1
    ):
        pairs, progress = [pair_of(example) for example in examples], _report_progress(stage, config.batch_size)
        base = fine_tune(base, pairs, work / f"stage-{stage}", config, progress)
        print(f"stage {stage}: {base}", flush=True)
    print(f"the mean of stages 2 and 3: {average([work / 'stage-2', work / 'stage-3'], work / 'model')}")


def average(folders: Sequence[Path], to: Path, shares: Sequence[float] | None = None) -> Path:
    """Write a model with the mean of the folders' weights; `shares` sum to 1, and are equal by default."""
    from safetensors.torch import load_file, save_file

    weights = [load_file(folder / "model.safetensors") for folder in folders]
    parts = shares or [1 / len(folders)] * len(folders)
    mean = {
        name: sum(part * each[name] for part, each in zip(parts, weights, strict=True))
        if value.is_floating_point()
        else value
        for name, value in weights[0].items()
    }
    to.mkdir(parents=True, exist_ok=True)
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folders[-1] / file, to / file)
    save_file(mean, to / "model.safetensors", metadata={"format": "pt"})
    return to


def select_examples(work: Path) -> tuple[list[Example], list[Example], list[Example]]:
    """Return the examples of each stage."""
    examples = list(Example.read(work / "train.jsonl"))
    at = round(SHARE * len(examples))
    known = [e for e in dict.fromkeys(examples) for _ in range(AGAIN.get(e.set, 0))]
    others = [e for e in examples[at:] if e.set not in AGAIN]
    second = [*known, *others[:OTHERS]]
    random.Random(SEED).shuffle(second)
    return examples[:at], second, _third(work, examples, others[OTHERS:])


def _third(work: Path, examples: list[Example], unseen: list[Example]) -> list[Example]:
    rng = random.Random(f"{SEED}/third")
    tested = {e.passage for e in Example.read(work / "test.jsonl") if e.relevant}
    generated = list(Example.read(work / "made.jsonl"))
    kinds = sorted({e.kind for e in generated})
    chosen = [e for kind in kinds for e in _sample([e for e in generated if e.kind == kind], MADE.get(kind), rng)]
    once = [e for e in dict.fromkeys(examples) if e.passage not in tested]
    for name, count in KNOWN.items():
        chosen += _sample([e for e in once if e.set == name], count, rng)
    chosen += _sample([e for e in unseen if e.passage not in tested], REST, rng)
    rng.shuffle(chosen)
    return chosen


def _sample(examples: list[Example], most: int | None, rng: random.Random) -> list[Example]:
    return examples if most is None or len(examples) <= most else rng.sample(examples, most)


def _report_progress(stage: int, batch: int) -> Callable[[int, int], None]:
    start: list[tuple[float, int]] = []

    def report(done: int, steps: int) -> None:
        if not start:
            start.append((time.monotonic(), done))
        elif done % 20 == 0:
            started, first = start[0]
            rate = (done - first) * batch / (time.monotonic() - started)
            left = (steps - done) * batch / rate / 60
            print(
                f"stage {stage}, step {done:,} of {steps:,}: {rate:.1f} pairs a second, {left:.0f} minutes left",
                flush=True,
            )

    return report


if __name__ == "__main__":
    main()
