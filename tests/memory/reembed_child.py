"""Reembed a memory's file slowly, until killed, and print each user that is done."""

import os
import sys
import time

from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter
from tests.memories import KEY, LastLetters


class SlowLastLetters(LastLetters):
    def embed_passages(self, texts):
        time.sleep(0.5)
        return super().embed_passages(texts)


if __name__ == "__main__":
    with GovernedMemory.open(
        sys.argv[1], embedder=SlowLastLetters(), tokens=WordCounter(), audit_key=KEY, reembed=True
    ) as memory:
        memory.reembed(progress=lambda done, users: os.write(1, f"{done} {users}\n".encode()))
