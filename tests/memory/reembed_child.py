"""Reembed a memory's file slowly, until killed, and print each user that is done."""

import os
import sys
import time

from tests.memories import LastLetters, as_place, open_memory


class SlowLastLetters(LastLetters):
    def embed_passages(self, texts):
        time.sleep(0.5)
        return super().embed_passages(texts)


if __name__ == "__main__":
    with open_memory(as_place(sys.argv[1]), embedder=SlowLastLetters(), reembed=True) as memory:
        memory.reembed(progress=lambda done, users: os.write(1, f"{done} {users}\n".encode()))
