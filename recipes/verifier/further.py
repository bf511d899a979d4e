"""Continues the training of the verifier on near misses, documentation, and a sample of the mixture.

    python -m recipes.verifier.further --data DATA --work WORK --base MODEL [--faq FOLDER]

WORK holds what `mixture` wrote; MODEL is the verifier to start from. Writes WORK/further.jsonl, WORK/further (the
trained model) and WORK/further-mean, the mean of its weights and MODEL's. An interrupted training is resumed.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from meve.training import TrainingConfig, fine_tune
from recipes.verifier import context, documentation, exchanged_details, near_misses
from recipes.verifier.examples import Example, pair_of, write
from recipes.verifier.splits import SEED
from recipes.verifier.train import average

CONFIG = TrainingConfig(
    epochs=1, batch_size=32, learning_rate=5e-5, warmup=0.05, max_length=160, dropout=0.0, bf16=True, seed=SEED
)
INVENTED = 5_000
"""The number of questions about invented subjects."""
SPANS = 600
UNANSWERABLE = 1_500
DOCUMENTATION = 4_800
"""The number of pairs about documentation."""
KNOWN = {"hotpotqa": 2_600, "2wiki": 1_900, "nq_open": 1_200}
"""Examples of questions with known evidence."""
REST = 2_600
"""Examples of the other sets of the mixture."""


def main() -> None:
    """Make the examples, train, and average with the start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--faq", type=Path, help="a folder with unpacked Debian packages that hold FAQs")
    given = parser.parse_args()
    file = given.work / "further.jsonl"
    if not file.is_file():
        write(make_examples(given.data, given.work, given.faq), file)
    examples = list(Example.read(file))
    for (name, kind), count in sorted(Counter((e.set, e.kind) for e in examples).items()):
        print(f"  {name:24} {kind:14} {count:7,}")
    started = time.monotonic()

    def report(done: int, steps: int) -> None:
        if done % 20 == 0:
            print(f"step {done:,} of {steps:,} after {time.monotonic() - started:.0f} s", flush=True)

    pairs = [pair_of(example) for example in examples]
    trained = fine_tune(given.base, pairs, given.work / "further", CONFIG, report)
    average([given.base, trained], given.work / "further-mean")


def make_examples(data: Path, work: Path, faq: Path | None) -> list[Example]:
    """Return all examples in random order, a share of the passages amid other text."""
    folder, rng = data / "train", random.Random(f"{SEED}/further")
    pages = list(documentation.examples(folder, SEED, faq))
    new = [
        *near_misses.invented(INVENTED, SEED),
        *near_misses.spans(SPANS, SEED),
        *exchanged_details.exchanged(folder, SEED),
        *exchanged_details.unanswerable(folder, UNANSWERABLE, SEED),
        *rng.sample(pages, min(DOCUMENTATION, len(pages))),
    ]
    replayed = list(
        replay(
            Example.read(work / "train.jsonl"),
            {e.passage for e in Example.read(work / "test.jsonl") if e.relevant},
            rng,
        )
    )
    sentences = context.filler([*(e.passage for e in pages), *(e.passage for e in replayed)])
    examples = list(context.wrapped([*new, *replayed], sentences, SEED))
    rng.shuffle(examples)
    return examples


def replay(examples: Iterable[Example], tested: set[str], rng: random.Random) -> list[Example]:
    """Return a sample of the mixture without relevant passages of test questions."""
    once = [e for e in dict.fromkeys(examples) if e.passage not in tested]
    chosen: list[Example] = []
    for name, count in KNOWN.items():
        chosen += rng.sample([e for e in once if e.set == name], count)
    chosen += rng.sample([e for e in once if e.set not in KNOWN and e.set != "squad2_unanswerable"], REST)
    return chosen


if __name__ == "__main__":
    main()
