"""Maintain a file round by round until no pair is left, and print each pair that is judged."""

import sys
import time

from meve.memory import Policy, UpdateVerdict
from tests.memories import open_memory

POLICY = Policy.from_dict({"merging": {"nominate": 0.0, "max_pairs": 20}})
"""A few pairs a round."""


class PrintingJudge:
    """Lets a newer statement replace an older one about the same tree, and prints both, slowly."""

    def judge(self, older, newer):
        sys.stdout.write(f"{older}|{newer}\n")
        sys.stdout.flush()
        time.sleep(0.005)
        is_same = older.split()[1] == newer.split()[1]
        return UpdateVerdict(relation="replaces" if is_same else "different", reason="number" if is_same else "")


def maintain_all(file):
    """Maintain until no pair is left, and return how many rounds it took."""
    rounds = 1
    with open_memory(file, policy=POLICY, updates=PrintingJudge()) as memory:
        while memory.maintain().left_pairs:
            rounds += 1
    return rounds
