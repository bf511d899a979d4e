"""Add messages to a session in a file, two at a time."""

import sys

from tests.memories import as_place, open_memory

if __name__ == "__main__":
    file, name, count = as_place(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with open_memory(file) as memory:
        for n in range(count):
            memory.messages.add("s", [{"call": [name, n]}, {"result": [name, n]}], user_id="alice")
