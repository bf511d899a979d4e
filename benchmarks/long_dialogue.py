"""How long a question to a dialogue of 50,000 turns takes: the first one, which reads them all, and later ones.

    python benchmarks/long_dialogue.py --data DATA [--turns 50000]

The turns are a public chat room's messages (IRC, Ubuntu's users), told again with a number where they don't suffice.
"""

import argparse
import statistics
import time
from itertools import cycle, islice
from pathlib import Path

from meve.dialogue import Dialogue, small_context
from meve.evaluation.datasets.synthetic_dialogues import small_talk

ROUNDS = 5
QUESTIONS = (
    "which kernel does ubuntu use?",
    "how to mount a windows share with samba",
    "is there a gui for apt?",
    "sound does not work with alsa",
    "how do I resize a partition?",
    "What did somebody say about the dapper release?",
    "where can I download the amd64 iso of Ubuntu 5.10?",
)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=50_000)
    given = parser.parse_args()
    said = small_talk(given.data)
    many = islice(enumerate(cycle(said)), given.turns)
    turns = [(("Ann", "Ben")[n % 2], text if n < len(said) else f"{text} {n // len(said)}") for n, text in many]
    dialogue = Dialogue.from_turns(turns)
    print(f"{given.turns:,} turns, of {len(said):,} messages: first question {_asked(dialogue, QUESTIONS[0]):,.0f} ms")
    embedder = dialogue.parts.embedder
    later, model = [], []
    for _ in range(ROUNDS):
        for question in QUESTIONS:
            later.append(_asked(dialogue, question))
            start = time.perf_counter()
            embedder.embed_query(question)
            model.append(1_000 * (time.perf_counter() - start))
    later.sort()
    print(f"{len(later)} later ones: median {statistics.median(later):.0f} ms, 95 % within {later[-2]:.0f}, all within")
    print(f"{later[-1]:.0f}; the model takes {statistics.median(model):.1f} of it")
    dialogue.append(("Ann", "The library bridge was designed by Clara Novak in 1962."))
    print(f"with a turn that is new: {_asked(dialogue, 'Who designed the library bridge?'):.0f} ms")


def _asked(dialogue: Dialogue, question: str) -> float:
    start = time.perf_counter()
    small_context(dialogue, question)
    return 1_000 * (time.perf_counter() - start)


if __name__ == "__main__":
    main()
