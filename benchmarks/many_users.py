"""Time of the same search in a memory of few users and in one of many, of 100 memories each, and the bytes they take.

    python -m benchmarks.many_users PLACE PLACE … [--users 100 10000] [--rounds 4]

Each PLACE is the path of a new SQLite file, or the URL of a PostgreSQL database, which may be named several times; the
numbers of users belong to them in order. The key files stand beside the SQLite files, or in `--keys`. What is filled
already isn't filled again. The memories are measured in turn, by one process: a user's first search, which reads the
user's memories from the database, later searches of the same users, and an addition. Embedding is 0.1 ms of each.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from meve._postgres import is_postgres_url
from meve.memory import GovernedMemory
from meve.memory.records import MemoryRecord, StoredRecord, user_key
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores._sql.rows import COLUMNS, seal_row, to_values
from meve.memory.stores._sql.transaction import SqlTransaction
from meve.memory.stores._sql.vault import SLOTS, put_setting, read_number

PER_USER = 100
AT_ONCE = 50
"""The number of users who are written in one transaction."""
ASKED = 100
"""The number of users who search."""
WORDS = np.array([f"word{n}" for n in range(20_000)])
CHANCES = 1 / np.arange(1, len(WORDS) + 1)
CHANCES /= CHANCES.sum()
DIMENSION = 256

Place = tuple[str, str, int]
"""Path or URL, the folder of the key files, and the number of users."""


def main() -> None:
    """Fill the memories that are missing, and measure all in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+")
    parser.add_argument("--users", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--keys", default=".", help="the folder of the key files of memories in PostgreSQL")
    parser.add_argument("--rounds", type=int, default=4, help="the searches of each user after the first")
    options = parser.parse_args()
    places = [(place, options.keys, users) for place, users in zip(options.places, options.users, strict=True)]
    for each in places:
        fill(each)
    measure(places, options.rounds)


def open_memory(place: Place) -> GovernedMemory:
    """Open the memory of a place."""
    target, keys, users = place
    if is_postgres_url(target):
        name = f"users {users}"
        return GovernedMemory.open(target, key_file=Path(keys, f"{name}.keys"), tenant=name, embedder="static")
    return GovernedMemory.open(target, embedder="static")


def fill(place: Place) -> None:
    """Write the memories of the users that are missing, with their entries in the log."""
    with open_memory(place) as memory:
        runtime, now = memory._runtime, datetime.now(UTC)
        done = memory.stats().records // PER_USER
        for first in range(done, place[2], AT_ONCE):
            random = np.random.default_rng(first)
            started = time.perf_counter()
            with runtime.store.writing(durable=False) as transaction:
                for n in range(first, min(first + AT_ONCE, place[2])):
                    put_all(transaction, memory, f"user {n}", make_records(f"user {n}", random, now))
            if first % 1_000 == 0:
                print(f"{first:,} users, {time.perf_counter() - started:.2f} s for {AT_ONCE}", flush=True)


def make_records(user: str, random: np.random.Generator, now: datetime) -> list[tuple[MemoryRecord, Any]]:
    """Return memories of a user with their vectors."""
    texts = random.choice(WORDS, (PER_USER, 12), p=CHANCES)
    vectors = random.standard_normal((10, DIMENSION))[random.integers(0, 10, PER_USER)]
    vectors += random.standard_normal((PER_USER, DIMENSION))
    return [
        (
            MemoryRecord(
                id=f"{n:03}", kind="fact", user_id=user, text=" ".join(texts[n]), source="chat_user",
                policy_class="factual", created_at=now, expires_at=None,
            ),
            vectors[n] / np.linalg.norm(vectors[n]),
        )
        for n in range(PER_USER)
    ]  # fmt: skip


def put_all(
    writing: RecordTransaction, memory: GovernedMemory, user: str, records: list[tuple[MemoryRecord, Any]]
) -> None:
    """Write new records of a new user, as `put` does one by one, with one statement for all."""
    transaction, key, model = writing._transaction, user_key(user), memory._runtime.embedder.model
    assert isinstance(transaction, SqlTransaction)
    vault = transaction.vault
    owner, version = transaction._next_version(key)
    first = read_number(vault.connection, SLOTS)
    vault.slots.make(first + len(records))
    put_setting(vault.connection, SLOTS, first + len(records))
    rows, names = [], []
    for slot, (record, vector) in enumerate(records, start=first):
        stored = StoredRecord(record=record, vector=vector, tokens=20, model=model)
        rows.append((owner.no, version, *seal_row(owner, slot, vault.slots.key(slot), to_values(stored))))
        hashed = owner.id_hash(record.id)
        names.append((owner.no, hashed, owner.key.seal(record.id.encode(), owner.place("log_names", hashed))))
        writing.log(memory._runtime.event(key, record, "add", "on request", record.created_at))
    columns = ("user", "changed", *COLUMNS)
    holes = ", ?" * len(columns)
    vault.connection.executemany(f"INSERT INTO memories (tenant, {', '.join(columns)}) VALUES (:tenant{holes})", rows)
    vault.connection.executemany("INSERT INTO log_names (tenant, user, id, name) VALUES (:tenant, ?, ?, ?)", names)


def measure(places: list[Place], rounds: int) -> None:
    """Print the medians of each memory, in milliseconds."""
    wall: dict[tuple[str, int], list[float]] = defaultdict(list)
    processor: dict[tuple[str, int], list[float]] = defaultdict(list)

    def time_call(name: str, n: int, call: Callable[[], object]) -> None:
        start, used = time.perf_counter(), time.process_time()
        call()
        processor[name, n].append(1_000 * (time.process_time() - used))
        wall[name, n].append(1_000 * (time.perf_counter() - start))

    random = np.random.default_rng(7)
    with ExitStack() as stack:
        memories = [stack.enter_context(open_memory(place)) for place in places]
        for n, memory in enumerate(memories):
            memory.search("a user without memories", user_id="nobody")  # loads the models
            print(f"{places[n][2]:,} users: {memory.stats()}")
        users = [random.choice(place[2], min(ASKED, place[2]), replace=False).tolist() for place in places]
        for number in range(1 + rounds):
            name = "later search" if number else "first search"
            for at in range(ASKED):
                query = " ".join(random.choice(WORDS, 3, p=CHANCES))
                for n, memory in enumerate(memories):
                    user = f"user {users[n][at]}"
                    time_call(name, n, partial(memory.search, query, user_id=user))
                    if number == rounds:
                        time_call("add", n, partial(memory.add, f"Told {query} of late.", user_id=user))
    print(f"{'users':<10}{'':<14}{'p50':>8}{'ratio':>8}{'p95':>8}{'CPU p50':>10}{'ratio':>8}")
    for name, n in wall:
        mine, used, of_first = (statistics.median(t[name, k]) for t, k in ((wall, n), (processor, n), (wall, 0)))
        late, used_first = np.percentile(wall[name, n], 95), statistics.median(processor[name, 0])
        print(
            f"{places[n][2]:<10}{name:<14}{mine:>8.2f}{mine / of_first:>8.2f}{late:>8.2f}{used:>10.2f}"
            f"{used / used_first:>8.2f}"
        )


if __name__ == "__main__":
    main()
