"""How long do a recall and an add take, with 10,000 memories of a user, and with 1,000,000 in one file?

    python benchmarks/memory_speed.py --data DATA [--large] [--folder FOLDER]

The texts are LoCoMo's turns, numbered, so that no two are the same; their vectors those of the turn, moved a little.
Records and their entries in the log are written straight into the store. Times are without those of the models, which
are measured beside them. Warm: the user's memories have been asked before; every question is asked once. Cold: the
first recall of a user in a file that was just opened, in a process that has the models. `--large` makes a second file,
of 900 users with 1,000 memories each and ten with 10,000, and asks users of 10,000 in both files in turn.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from meve.components.embedders import resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.memory import GovernedMemory, Policy
from meve.memory._recall.scoring import shown
from meve.memory._write.record_factory import drafted
from meve.memory.records import StoredRecord, user_key
from meve.types import FloatArray

MANY, FEW, LARGE, SMALL = 10_000, 1_000, 10, 900
"""Memories of a large and of a small user, and how many there are of each in the large file."""
ASKED, ADDED, OPENED = 300, 300, 5
BATCH = 1_000


class Timed:
    """An embedder that adds up the seconds that it takes."""

    def __init__(self) -> None:
        self._inner = resolve_embedder(None)
        self.name, self.dimension, self.similarity = self._inner.name, self._inner.dimension, self._inner.similarity
        self.seconds = 0.0

    def embed_query(self, text: str) -> FloatArray:
        """A question's vector, shape (d,)."""
        return self._timed(self._inner.embed_query, text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Texts' vectors, shape (n, d)."""
        return self._timed(self._inner.embed_passages, texts)

    def _timed(self, embed: Callable[[Any], FloatArray], given: Any) -> FloatArray:
        begin = time.perf_counter()
        try:
            return embed(given)
        finally:
            self.seconds += time.perf_counter() - begin


class Material:
    """Texts to remember, with vectors and tokens, and questions to ask."""

    def __init__(self, folder: Path, embedder: Timed) -> None:
        lines = (folder / "conversations.jsonl").read_text("utf-8").splitlines()
        talks = [json.loads(line) for line in lines]
        self._texts = [
            f"{turn['speaker']}: {turn['text']}" for t in talks for s in t["sessions"] for turn in s["turns"]
        ]
        self._vectors = embedder.embed_passages(self._texts)
        self._tokens = resolve_tokens(None).count_many(self._texts)
        self._noise = np.random.default_rng(7)
        asked = [json.loads(line)["question"] for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
        random.Random(7).shuffle(asked)
        self._questions = iter(asked)

    def question(self) -> str:
        """One that wasn't asked before."""
        return next(self._questions)

    def text(self, n: int) -> str:
        """One of those that are remembered."""
        return self._texts[n % len(self._texts)]

    def fill(self, memory: GovernedMemory, user: str, count: int) -> None:
        """So many memories for a user, in batches of a transaction each."""
        kit = memory._kit
        for begin in range(0, count, BATCH):
            with kit.store.writing(durable=False) as transaction:
                for n in range(begin, min(begin + BATCH, count)):
                    at = (sum(user.encode()) + n) % len(self._texts)
                    record = drafted(
                        f"{self._texts[at]} ({n})", user_id=user, source="chat_user", policy_class="canonical",
                        id=str(n), session_id=str(n // 20), policy=kit.policy, now=kit.clock.now(), tags=(),
                        classifier=kit.classifier, tagger=kit.tagger,
                    )  # fmt: skip
                    vector = self._vectors[at] + 0.01 * self._noise.standard_normal(self._vectors.shape[1])
                    beside = kit.tokens.count(shown(f"({n})", record.source, record.created_at))
                    stored = StoredRecord(record=record, vector=vector, tokens=self._tokens[at] + beside)
                    transaction.insert(user_key(user), stored)
                    transaction.log(kit.event(user_key(user), record, "add", "made for a benchmark", record.created_at))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--large", action="store_true", help="a file of 1,000,000 memories beside it: 3 GB, minutes")
    parser.add_argument("--folder", type=Path, help="where the files are made; a temporary one by default")
    given = parser.parse_args()
    embedder = Timed()
    material = Material(given.data / "locomo", embedder)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        files = {"10,000 in the file": Path(name) / "one.db"}
        with opened(files["10,000 in the file"], embedder) as memory:
            material.fill(memory, "large 0", MANY)
        if given.large:
            files["1,000,000 in the file"] = Path(name) / "many.db"
            began = time.perf_counter()
            with opened(files["1,000,000 in the file"], embedder) as memory:
                for n in range(LARGE):
                    material.fill(memory, f"large {n}", MANY)
                for n in range(SMALL):
                    material.fill(memory, f"small {n}", FEW)
                print(f"{memory.stats()}, made in {time.perf_counter() - began:.0f} s")
        print("| | file | p50 ms | p95 ms | models, p50 ms |\n|---|---|---:|---:|---:|")
        for measured in (cold, warm):
            for name, took in measured(files, material, embedder).items():
                show(name, took)


Took = dict[str, list[tuple[float, float]]]
"""By file: milliseconds without the models' time, and theirs."""


@contextmanager
def opened(file: Path, embedder: Timed) -> Iterator[GovernedMemory]:
    """A memory that caches no recalls; the bound of its shelves is the default."""
    policy = Policy.from_dict({"limits": {"recalls": 0, "per_user": 2 * MANY}, "chat_ttl": None})
    with GovernedMemory.open(file, policy=policy, embedder=embedder) as memory:
        yield memory


def timed(embedder: Timed, what: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds without the models' time, and theirs."""
    embedder.seconds = 0.0
    begin = time.perf_counter()
    what()
    took = time.perf_counter() - begin
    return 1_000 * (took - embedder.seconds), 1_000 * embedder.seconds


def large_of(name: str, n: int) -> str:
    """A user of 10,000 memories in that file."""
    return f"large {n % (LARGE if name.startswith('1,') else 1)}"


def cold(files: dict[str, Path], material: Material, embedder: Timed) -> dict[str, Took]:
    """Opening the file, and a user's first recall; the files in turn."""
    opening: Took = {name: [] for name in files}
    first: Took = {name: [] for name in files}
    for n in range(OPENED):
        for name, file in files.items():
            began = time.perf_counter()
            with opened(file, embedder) as memory:
                opening[name].append((1_000 * (time.perf_counter() - began), 0.0))
                user, question = large_of(name, n), material.question()
                first[name].append(timed(embedder, lambda: memory.search(question, user_id=user)))  # noqa: B023
    return {"open the file": opening, "first recall, cold": first}


def warm(files: dict[str, Path], material: Material, embedder: Timed) -> dict[str, Took]:
    """Recalls and adds of users that were asked before; the files in turn."""
    recalls: Took = {name: [] for name in files}
    adds: Took = {name: [] for name in files}
    memories = {name: opened(file, embedder) for name, file in files.items()}
    entered = {name: each.__enter__() for name, each in memories.items()}
    for name, memory in entered.items():
        for n in range(LARGE):
            memory.search(material.question(), user_id=large_of(name, n))
    for n in range(ASKED):
        for name, memory in entered.items():
            question = material.question()
            user = large_of(name, n)
            recalls[name].append(timed(embedder, lambda: memory.search(question, user_id=user)))  # noqa: B023
    for n in range(ADDED):
        for name, memory in entered.items():
            user, text = large_of(name, n), f"{material.text(n)} That was said once more, as number {n}."
            adds[name].append(timed(embedder, lambda: memory.add(text, user_id=user)))  # noqa: B023
    for each in memories.values():
        each.__exit__(None, None, None)
    return {"recall": recalls, "add, durable": adds}


def show(what: str, took: Took) -> None:
    """A row for each file."""
    for name, found in took.items():
        without, models = ([each[n] for each in found] for n in (0, 1))
        p95 = statistics.quantiles(without, n=20)[-1] if len(without) >= 20 else max(without)
        print(
            f"| {what} | {name} | {statistics.median(without):.2f} | {p95:.2f} | {statistics.median(models):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
