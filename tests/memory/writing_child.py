"""Adds memories to a file until it is killed, and says of each when it is acknowledged."""

import sys

from meve.memory import GovernedMemory
from meve.testing.fakes import WordCounter, WordEmbedder

KEY = b"a key of the tests, long enough"


def main(file, name, count, threads):
    from concurrent.futures import ThreadPoolExecutor

    memory = GovernedMemory.open(file, embedder=WordEmbedder(), tokens=WordCounter(), audit_key=KEY)

    def add(n):
        made = memory.add(f"fact {n} of {name}", user_id=f"user {n % 3}", id=f"{name}-{n}", source="doc")
        if n % 5 == 4:
            memory.update(made.id, user_id=made.user_id, text=f"changed fact {n} of {name}")
        if n % 7 == 6:
            memory.delete(made.id, user_id=made.user_id)
            sys.stdout.write(f"gone {made.id}\n")
        else:
            sys.stdout.write(f"kept {made.user_id}/{made.id}\n")
        sys.stdout.flush()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(count)))
    memory.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
