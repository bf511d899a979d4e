"""The memory-speed experiment: recalls and adds with 10,000 memories of a user, and with 1,000,000 in one file.

The texts are LoCoMo's turns, numbered, so that no two are equal; their vectors are the turns' with a little noise. So
recalls meet copies with other numbers, which real talk has not: a file of as many distinct turns is measured beside it
(`distinct_turns`), the long ones with their passages. All files are asked LoCoMo's questions. Records and their audit
entries are written directly into the store. Times exclude those of the models, which are measured beside them. Warm:
the user has recalled before; every question is asked once. Cold: the first recall of a user in a file that was just
opened, in a process that has loaded the models.
"""

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from meve.components.embedders import FAST, resolve_embedder
from meve.components.tokenizers import resolve_tokens
from meve.errors import DatasetError
from meve.evaluation._model_caches import WrappedEmbedder
from meve.evaluation.datasets._row_reader import read_rows
from meve.evaluation.experiments._experiment import SEED
from meve.evaluation.experiments.memory.distinct_turns import find_missing, read_distinct_turns, read_locomo
from meve.evaluation.experiments.memory.memory_results import MemoryResults, Tally
from meve.evaluation.results import collect_versions
from meve.memory import GovernedMemory, Policy
from meve.memory._contradiction.outline import outline_of
from meve.memory._recall.memory_passage import format_memory
from meve.memory._write.record_factory import make_record
from meve.memory.records import StoredRecord, user_key
from meve.types import FloatArray, StageProgress

NAME = "memory speed"
SMALL_FILE, LARGE_FILE = "10,000 in the file", "1,000,000 in the file"
DISTINCT_FILE = "10,000 distinct turns in the file"
BATCH = 1_000
REASON = "made for a benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySpeedSizes:
    """The numbers of memories and calls."""

    per_large_user: int = 10_000
    per_small_user: int = 1_000
    large_users: int = 10
    """Large users of the large file."""
    small_users: int = 900
    """Small users of the large file."""
    calls: int = 300
    """Warm recalls, and adds, of each file."""
    openings: int = 5
    """The number of times that each file is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySpeedOptions:
    """The options of the memory-speed experiment."""

    data: Path
    """The folder with the folder `locomo`, and those of the sets of `distinct_turns`, without which that file isn't
    measured."""
    large: bool = False
    """Whether to measure a file of 1,000,000 memories too: 3 GB, minutes."""
    folder: Path | None = None
    """The folder of the files; None for the system's temporary folder."""
    counts: MemorySpeedSizes = MemorySpeedSizes()
    seed: int = SEED


class _TimedEmbedder(WrappedEmbedder):
    """An embedder that adds up the seconds that it takes."""

    seconds = 0.0

    def embed_query(self, text: str) -> FloatArray:
        """Return the query's vector, shape (d,)."""
        return self._timed(self._inner.embed_query, text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the passages' vectors, shape (n, d)."""
        return self._timed(self._inner.embed_passages, texts)

    def _timed(self, embed: Callable[[Any], FloatArray], text: Any) -> FloatArray:  # noqa: ANN401 - one text or many
        start = perf_counter()
        try:
            return embed(text)
        finally:
            self.seconds += perf_counter() - start


class _Material:
    """Texts to remember, with vectors and token counts, and questions to ask."""

    def __init__(self, folder: Path, embedder: _TimedEmbedder) -> None:
        self._texts = [turn for row in read_rows(folder / "conversations.jsonl") for turn in read_locomo(row)]
        self._vectors = embedder.embed_passages(self._texts)
        self._tokens = resolve_tokens(None).count_many(self._texts)
        self._noise = np.random.default_rng(7)
        questions = [row.text("question") for row in read_rows(folder / "questions.jsonl")]
        random.Random(7).shuffle(questions)
        self.questions = iter(questions)
        """Each is asked once."""

    def text(self, n: int) -> str:
        """Return one of the remembered texts."""
        return self._texts[n % len(self._texts)]

    def fill(self, memory: GovernedMemory, user: str, count: int) -> None:
        """Add `count` memories for a user, in one transaction per batch."""
        runtime = memory._runtime
        for start in range(0, count, BATCH):
            with runtime.store.writing(durable=False) as transaction:
                for n in range(start, min(start + BATCH, count)):
                    at = (sum(user.encode()) + n) % len(self._texts)
                    record = make_record(
                        f"{self._texts[at]} ({n})", user_id=user, source="chat_user", policy_class="canonical",
                        id=str(n), session_id=str(n // 20), policy=runtime.policy, now=runtime.clock.now(), tags=(),
                        classifier=runtime.classifier, tagger=runtime.tagger,
                    )  # fmt: skip
                    vector = self._vectors[at] + 0.01 * self._noise.standard_normal(self._vectors.shape[1])
                    frame = runtime.tokens.count(format_memory(f"({n})", record.source, record.created_at))
                    stored = StoredRecord(
                        record=record,
                        vector=vector,
                        tokens=self._tokens[at] + frame,
                        model=runtime.embedder.model,
                        outline=outline_of(record),
                    )
                    transaction.insert(user_key(user), stored)
                    transaction.log(runtime.event(user_key(user), record, "add", REASON, record.created_at))


def _fill_distinct(memory: GovernedMemory, user: str, data: Path, count: int) -> None:
    """Add `count` distinct turns for a user, as `GovernedMemory.add` stores them.

    Raises:
        DatasetError: there are fewer, or a set is damaged.
    """
    runtime = memory._runtime
    texts = list(islice(read_distinct_turns(data), count))
    if len(texts) < count:
        raise DatasetError(f"{data} holds {len(texts):,} distinct turns, and {count:,} are needed: give the whole sets")
    for start in range(0, count, BATCH):
        records = [
            make_record(
                text, user_id=user, source="chat_user", policy_class="canonical", id=str(n), session_id=str(n // 20),
                policy=runtime.policy, now=runtime.clock.now(), tags=(), classifier=runtime.classifier,
                tagger=runtime.tagger,
            )
            for n, text in enumerate(texts[start : start + BATCH], start)
        ]  # fmt: skip
        with runtime.store.writing(durable=False) as transaction:
            transaction.insert(user_key(user), *runtime.stored_all(records))
            transaction.log(*(runtime.event(user_key(user), r, "add", REASON, r.created_at) for r in records))


def run_memory_speed(options: MemorySpeedOptions, progress: StageProgress = lambda *_: None) -> MemoryResults:
    """Create the files and time openings, recalls and adds.

    Raises:
        DatasetError: LoCoMo is absent, truncated or of another format.
    """
    counts = options.counts
    embedder = _TimedEmbedder(resolve_embedder(FAST))
    material = _Material(options.data / "locomo", embedder)
    tally = Tally(NAME, options.seed)
    sizes: dict[str, str] = {}
    with TemporaryDirectory(dir=options.folder) as folder:
        files, large_users = {SMALL_FILE: Path(folder) / "one.db"}, {SMALL_FILE: 1}
        if options.large:
            files[LARGE_FILE], large_users[LARGE_FILE] = Path(folder) / "many.db", counts.large_users
        for name, file in files.items():
            users = {f"large {n}": counts.per_large_user for n in range(large_users[name])}
            if name == LARGE_FILE:
                users |= {f"small {n}": counts.per_small_user for n in range(counts.small_users)}
            with _open_uncached(file, embedder, counts) as memory:
                for n, (user, count) in enumerate(users.items()):
                    if name == LARGE_FILE:
                        progress("large file", n, len(users))
                    material.fill(memory, user, count)
                sizes[name] = str(memory.stats())
        if missing := find_missing(options.data):
            sizes[DISTINCT_FILE] = f"not measured, since {', '.join(missing)} is missing"
            warnings.warn(f"{DISTINCT_FILE}: {sizes[DISTINCT_FILE]}", stacklevel=2)
        else:
            files[DISTINCT_FILE], large_users[DISTINCT_FILE] = Path(folder) / "distinct.db", 1
            with _open_uncached(files[DISTINCT_FILE], embedder, counts) as memory:
                _fill_distinct(memory, "large 0", options.data, counts.per_large_user)
                sizes[DISTINCT_FILE] = str(memory.stats())
        run = _Run(files, large_users, material, embedder, counts, tally)
        progress("cold", 0, 2)
        run.time_cold()
        progress("warm", 1, 2)
        run.time_warm()
        progress("done", 2, 2)
    settings = {"seed": options.seed, "files": sizes, "embedder": embedder.name, "versions": collect_versions()}
    return MemoryResults.from_tallies("memory-speed", settings, [tally])


def _open_uncached(file: Path, embedder: _TimedEmbedder, counts: MemorySpeedSizes) -> GovernedMemory:
    """Open a memory that caches no recalls."""
    limits = {"recalls": 0, "per_user": 2 * counts.per_large_user}
    policy = Policy.from_dict({"limits": limits, "chat_ttl": None})
    return GovernedMemory.open(file, policy=policy, embedder=embedder)


@dataclass(frozen=True, slots=True)
class _Run:
    """The timing of all files, in turn."""

    files: Mapping[str, Path]
    large_users: Mapping[str, int]
    material: _Material
    embedder: _TimedEmbedder
    counts: MemorySpeedSizes
    tally: Tally

    def time_cold(self) -> None:
        """Time the opening of each file, and a user's first recall in it."""
        for n in range(self.counts.openings):
            for name, file in self.files.items():
                start = perf_counter()
                with _open_uncached(file, self.embedder, self.counts) as memory:
                    self.tally.add_time(name, "open the file, ms", 1_000 * (perf_counter() - start))
                    self._time_recall(name, "first recall, cold", memory, n)

    def time_warm(self) -> None:
        """Time recalls and durable adds of users who have recalled before."""
        with ExitStack() as stack:
            memories = {
                name: stack.enter_context(_open_uncached(file, self.embedder, self.counts))
                for name, file in self.files.items()
            }
            for name, memory in memories.items():
                for n in range(self.counts.large_users):
                    memory.search(next(self.material.questions), user_id=self._user(name, n))
            for n in range(self.counts.calls):
                for name, memory in memories.items():
                    self._time_recall(name, "recall", memory, n)
            for n in range(self.counts.calls):
                for name, memory in memories.items():
                    user, text = self._user(name, n), f"{self.material.text(n)} That was said once more, as number {n}."
                    self._time(name, "add, durable", lambda: memory.add(text, user_id=user))  # noqa: B023 - called at once

    def _user(self, name: str, n: int) -> str:
        return f"large {n % self.large_users[name]}"

    def _time_recall(self, name: str, what: str, memory: GovernedMemory, n: int) -> None:
        user, question = self._user(name, n), next(self.material.questions)
        self._time(name, what, lambda: memory.search(question, user_id=user))

    def _time(self, name: str, what: str, call: Callable[[], object]) -> None:
        self.embedder.seconds = 0.0
        start = perf_counter()
        call()
        seconds = perf_counter() - start
        self.tally.add_time(name, f"{what}, ms", 1_000 * (seconds - self.embedder.seconds))
        self.tally.add_time(name, f"{what}, models, ms", 1_000 * self.embedder.seconds)
