"""Bytes that memories and passages take: in an SQLite file, in PostgreSQL, and in an index.

    python benchmarks/storage_size.py [--postgres URL] [--number 1000]

Each memory is a statement of 12 words, each passage a text of 120; the words are random. What the empty store takes is
subtracted. `per_log_entry` is what another search that returns one memory adds. `--postgres` names an empty database.
"""

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meve import Retriever
from meve.memory import GovernedMemory

WORDS = [
    f"{a}{b}{c}" for a in ("ba", "ke", "mi", "no", "tu") for b in ("la", "re", "so") for c in ("n", "rt", "sk", "m")
]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--number", type=int, default=1_000)
    options = parser.parse_args()
    for embedder in ("minilm", "static"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            print(embedder, "SQLite", measure_file(folder, embedder, options.number))
            print(embedder, "index", measure_index(folder / "index", embedder, options.number))
            if options.postgres:
                print(embedder, "PostgreSQL", measure_postgres(options.postgres, folder, embedder, options.number))


def measure_file(folder: Path, embedder: str, number: int) -> dict[str, float]:
    """Measure a memory in a file: the database, its write-ahead log and its keys."""

    def size() -> int:
        return sum(each.stat().st_size for each in folder.glob("memory.db*"))

    return measure_memory(lambda: GovernedMemory.open(folder / "memory.db", embedder=embedder), size, number)


def measure_postgres(url: str, folder: Path, embedder: str, number: int) -> dict[str, float]:
    """Measure a memory in PostgreSQL: its tables with their indices and the key file, without the server's log."""
    import psycopg

    keys = folder / "memory.keys"
    tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'meve%'"

    def size() -> int:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM")
            row = connection.execute(tables).fetchone()
            assert row is not None
            return int(row[0]) + keys.stat().st_size

    options: dict[str, Any] = {"key_file": keys, "tenant": embedder, "embedder": embedder}
    return measure_memory(lambda: GovernedMemory.open(url, **options), size, number)


def measure_memory(opening: Callable[[], GovernedMemory], size: Callable[[], int], number: int) -> dict[str, float]:
    """Return the bytes of a memory and of an entry of the log."""
    opening().close()
    begin = size()
    words = random.Random(1)
    with opening() as memory:
        for n in range(number):
            memory.add(make_text(words, 12), user_id=n % 10, source="doc")
    full = size()
    with opening() as memory:
        for n in range(number):
            memory.search(make_text(words, 3), user_id=n % 10, limit=1)
    return {"per_memory": round((full - begin) / number), "per_log_entry": round((size() - full) / number)}


def measure_index(folder: Path, embedder: str, number: int) -> dict[str, float]:
    """Return the bytes of a passage in an index, and how many of them are its text."""
    words = random.Random(2)
    texts = [make_text(words, 120) for _ in range(number)]
    Retriever.from_texts(texts, embedder=embedder).save(folder)
    total = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return {"per_passage": round(total / number), "of_these_text": round(sum(map(len, texts)) / number)}


def make_text(words: random.Random, count: int) -> str:
    """Return random words."""
    return " ".join(words.choices(WORDS, k=count)).capitalize() + "."


if __name__ == "__main__":
    main()
