"""Add messages to a session in a file, two at a time."""

from tests.memories import open_memory


def add_pairs(file, name, count):
    with open_memory(file) as memory:
        for n in range(count):
            memory.messages.add("s", [{"call": [name, n]}, {"result": [name, n]}], user_id="alice")
