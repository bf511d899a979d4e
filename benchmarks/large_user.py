"""CPU time and memory of exact search over many memories of one user, the first search with its reading included.

python -m benchmarks.large_user PLACE [--memories 100000]

PLACE is the path of a new SQLite file, or the URL of a PostgreSQL database; the key file stands in a temporary folder.
Texts are random words, and vectors lie around 200 centres. The first search and the others run in a process of their
own, which has loaded the models.
"""

import argparse
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from meve._postgres import is_postgres_url
from meve.memory import GovernedMemory, Policy
from meve.memory.records import MemoryRecord, StoredRecord, user_key

BATCH = 1_000
SEARCHES = 40
USER = "alice"


def main() -> None:
    """Fill a memory, and print what another process measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--keys", help="the key file of a memory that is filled already")
    options = parser.parse_args()
    if options.keys is not None:
        measure(options.place, options.keys, options.memories)
        return
    with TemporaryDirectory() as folder:
        keys = str(Path(folder, "memory.keys"))
        fill(options.place, keys, options.memories)
        subprocess.run([sys.executable, "-m", "benchmarks.large_user", *sys.argv[1:], "--keys", keys], check=True)


def fill(place: str, keys: str, count: int) -> None:
    """Add memories of one user directly to the store."""
    random = np.random.default_rng(7)
    words = np.array([f"word{n}" for n in range(20_000)])
    chances = 1 / np.arange(1, len(words) + 1)
    centres = random.standard_normal((200, 384))
    with open_memory(place, keys, count) as memory:
        model, now = memory._runtime.embedder.model, datetime.now(UTC)
        for first in range(0, count, BATCH):
            texts = random.choice(words, (BATCH, 15), p=chances / chances.sum())
            vectors = centres[random.integers(0, 200, BATCH)] + random.standard_normal((BATCH, 384))
            with memory._runtime.store.backend.writing(durable=False) as transaction:
                for n in range(min(BATCH, count - first)):
                    record = MemoryRecord(
                        id=f"{first + n:07}", kind="fact", user_id=USER, text=" ".join(texts[n]), source="doc",
                        policy_class="canonical", created_at=now, expires_at=None,
                    )  # fmt: skip
                    vector = vectors[n] / np.linalg.norm(vectors[n])
                    transaction.put(user_key(USER), StoredRecord(record=record, vector=vector, tokens=20, model=model))


def measure(place: str, keys: str, count: int) -> None:
    """Print the CPU seconds of the first search, of the others, and the memory that they take."""
    with open_memory(place, keys, count) as memory:
        memory.search("a user without memories", user_id="bob")  # loads the models
        before = peak()
        start = time.process_time()
        memory.search("word1 word20 word300", user_id=USER)
        first, used = time.process_time() - start, peak() - before
        start = time.process_time()
        for n in range(SEARCHES):
            memory.search(f"word{n} word{10 * n} word{100 * n}", user_id=USER)
        later = 1_000 * (time.process_time() - start) / SEARCHES
    print(f"{count:,} memories: first search {first:.2f} s, {used} MiB; each of the others {later:.1f} ms")


def peak() -> int:
    """Return the most memory that the process took so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024


def open_memory(place: str, keys: str, count: int) -> GovernedMemory:
    """Open a memory that keeps so many memories of a user active."""
    options: dict[str, Any] = {"key_file": keys, "tenant": f"large user {count}"} if is_postgres_url(place) else {}
    policy = Policy.from_dict({"limits": {"per_user": 2 * count}})
    return GovernedMemory.open(place, policy=policy, embedder="minilm", **options)


if __name__ == "__main__":
    main()
