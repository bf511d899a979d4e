"""Search a memory until killed, and print each recall that was answered, with its memories."""

import sys

from tests.memories import open_memory


def search(file):
    memory = open_memory(file)
    while True:
        recall = memory.search("Which numbers do I know?", user_id="alice", limit=3)
        sys.stdout.write(" ".join([recall.id, *(record.id for record in recall.records)]) + "\n")
        sys.stdout.flush()
