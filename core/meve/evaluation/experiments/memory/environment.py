"""The environment of memory experiments: temporary memories with a fake clock, and a plain store to compare with."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from meve._formulas import normalize
from meve.evaluation.experiments.memory.synthetic_facts import Fact
from meve.memory import GovernedMemory, Policy
from meve.memory.policy import PolicyClass
from meve.ports import Embedder, TokenCounter
from meve.testing.fakes import FakeClock

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
K = 5
"""Memories in a context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of the experiments; by default, most intervals are a few percentage points wide."""

    users: int = 6
    facts: int = 50
    """Of each user."""
    secrets: int = 25
    """Of each user, in addition to facts."""
    false: int = 20
    """Facts of each user that get a false counterpart."""
    rounds: int = 8
    """How often each of these is asked and answered."""
    changing: int = 30
    """Facts of each user that change."""
    changes: int = 3
    """How often each of them changes."""
    talks: int = 8
    turns: int = 100
    """Of each conversation."""


QUICK = Sizes(users=2, facts=20, secrets=5, false=6, rounds=2, changing=10, changes=2, talks=2, turns=20)
"""Sizes for a quick check; the intervals are wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySandbox:
    """An open memory with its clock and its file."""

    memory: GovernedMemory
    clock: FakeClock
    file: Path

    def add_fact(self, user: str, fact: Fact, *, policy_class: PolicyClass = "factual") -> None:
        """Add a fact from a document, tagged with its topic."""
        self.memory.add(fact.text, user_id=user, source="doc", policy_class=policy_class, id=fact.id, tags=[fact.topic])


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The models, sizes and seed that the experiments share."""

    embedder: Embedder
    tokens: TokenCounter
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 42
    open_memory: Callable[..., GovernedMemory] = GovernedMemory.open
    """Opens a memory; tests pass a faulty one to check that an experiment detects it."""

    @contextmanager
    def open_sandbox(self, policy: Policy | None = None) -> Iterator[MemorySandbox]:
        """Open a new, empty memory that is deleted afterwards."""
        with TemporaryDirectory() as folder:
            clock, file = FakeClock(START), Path(folder) / "memory.db"
            with self.open_memory(
                file, policy=policy, embedder=self.embedder, tokens=self.tokens, clock=clock
            ) as memory:
                yield MemorySandbox(memory=memory, clock=clock, file=file)

    def rng(self, name: str) -> Random:
        """Return a random generator for one purpose, which depends on the seed."""
        return Random(f"{self.seed} {name}")

    @property
    def users(self) -> list[str]:
        """The users' ids."""
        return [f"user-{n}" for n in range(self.sizes.users)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainEntry:
    """An entry of a plain store."""

    id: str
    text: str
    user: str = ""
    tag: str = ""


@dataclass(slots=True)
class PlainStore:
    """A plain vector store with the same embedder: the top k by cosine, without expiry, users or scores."""

    embedder: Embedder
    _entries: list[PlainEntry] = field(default_factory=list)
    _vectors: list[np.ndarray] = field(default_factory=list)

    def add(self, entries: Sequence[PlainEntry]) -> None:
        """Store the entries; none is ever removed."""
        self._entries += entries
        self._vectors += list(normalize(self.embedder.embed_passages([e.text for e in entries])))

    def search(self, question: str, k: int = K, *, user: str = "", tag: str = "") -> list[PlainEntry]:
        """Return the k nearest entries, nearest first; only of the user and with the tag, unless these are empty."""
        rows = [n for n, e in enumerate(self._entries) if (not user or e.user == user) and (not tag or e.tag == tag)]
        if not rows:
            return []
        scores = np.array([self._vectors[n] for n in rows]) @ normalize(self.embedder.embed_query(question))
        return [self._entries[rows[n]] for n in np.argsort(-scores, kind="stable")[:k].tolist()]


def rank_of(ids: Sequence[str], id: str, absent: int) -> int:
    """Return the rank of an id, from 1; `absent` if it isn't there."""
    return ids.index(id) + 1 if id in ids else absent
