"""Makes the training, selection and test examples of the shipped verifier.

    python -m recipes.verifier.mixture --data DATA --to WORK

Writes `train.jsonl`, `dev.jsonl` and `test.jsonl`, and for the last stage `made.jsonl`: multi-hop
questions and claims generated from passages. The same data and seed give the same files, byte for byte.
"""

import argparse
import random
from collections import Counter
from pathlib import Path

from recipes.verifier import chains, claims, pairs, questions
from recipes.verifier.examples import Example, write
from recipes.verifier.splits import SEED

REPEATED = {
    ("hotpotqa", "paragraph"): 2,
    ("hotpotqa", "second hop"): 2,
    ("2wiki", "paragraph"): 3,
    ("2wiki", "second hop"): 2,
}
"""Number of copies of each example of small, important sets; others occur once."""


def main() -> None:
    """Make the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    make(given.data, given.to)


def make_once(data: Path, to: Path) -> None:
    """Write the files of examples to a folder unless they are there."""
    if not all((to / f"{name}.jsonl").is_file() for name in ("train", "dev", "test", "made")):
        make(data, to)


def make(data: Path, to: Path) -> None:
    """Write the files of examples to a folder and print their counts."""
    question_examples = [*questions.examples(data, SEED), *questions.kept_out(data, SEED)]
    all_examples = [*question_examples, *pairs.examples(data / "train", SEED)]
    parts: dict[str, list[Example]] = {
        part: [e for e in all_examples if e.part == part] for part in ("train", "dev", "test")
    }
    parts["train"] = [e for e in parts["train"] for _ in range(REPEATED.get((e.set, e.kind), 1))]
    random.Random(SEED).shuffle(parts["train"])
    parts["made"] = [
        *chains.examples(questions.untested(data), SEED),
        *claims.examples(data / "train", SEED),
    ]
    for part, examples in parts.items():
        write(examples, to / f"{part}.jsonl")
        print(f"{part}: {len(examples):,} pairs")
        for (name, kind), count in sorted(Counter((e.set, e.kind) for e in examples).items()):
            print(f"  {name:24} {kind:14} {count:7,}")


if __name__ == "__main__":
    main()
