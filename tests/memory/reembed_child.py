"""Reembed a memory's file slowly, until killed, and print each user that is done."""

import os
import time

from tests.memories import LastLetters, open_memory


class SlowLastLetters(LastLetters):
    def embed_passages(self, texts):
        time.sleep(0.5)
        return super().embed_passages(texts)


def reembed_slowly(file):
    with open_memory(file, embedder=SlowLastLetters(), reembed=True) as memory:
        memory.reembed(progress=lambda done, users: os.write(1, f"{done} {users}\n".encode()))
