"""Measure whether a memory keeps what holds of two sentences that are told together when a later one ends the first.

python -m benchmarks.follow_ups

It reads `tests/memory/everyday_follow_ups.txt`. In each line, two sentences are told in one turn and a third one a week
later. Of a `comment`, the second only comments on the first, and both end; of a `fact`, only the first ends; of `news`,
none does.
"""

import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from meve.memory import GovernedMemory, Turn, record_turns
from meve.testing.fakes import FakeClock

TOLD = Path(__file__).parents[1] / "tests" / "memory" / "everyday_follow_ups.txt"
PRONOUN = re.compile(r"^(?:he|she|it|that)(?:['’]s)?\s+", re.IGNORECASE)


def main() -> None:
    """Print, by kind, how many first and second sentences still hold."""
    count: Counter[tuple[str, str]] = Counter()
    with TemporaryDirectory() as folder:
        for n, line in enumerate(TOLD.read_text(encoding="utf-8").splitlines()):
            kind, first, further, newer = line.split(" | ")
            live = _remember(Path(folder) / f"{n}.db", f"{first} {further}", newer)
            count[kind, "pairs"] += 1
            count[kind, "first"] += first in live
            count[kind, "second"] += PRONOUN.sub("", further) in live
    for kind in dict.fromkeys(kind for kind, _ in count):
        pairs = count[kind, "pairs"]
        print(f"{kind}: first sentence holds {count[kind, 'first']} of {pairs}, second {count[kind, 'second']}")


def _remember(file: Path, told: str, newer: str) -> str:
    """Return all that holds after a turn, a week, another turn and maintenance."""
    clock = FakeClock()
    with GovernedMemory.open(file, clock=clock) as memory:
        for text in (told, newer):
            record_turns(memory, [Turn(speaker="user", text=text)], user_id="user", session_id=text)
            clock.advance(timedelta(days=7))
        memory.maintain(user_id="user")
        return " ".join(record.text for record in memory.list(user_id="user"))


if __name__ == "__main__":
    main()
