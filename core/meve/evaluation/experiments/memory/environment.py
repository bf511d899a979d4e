"""Where the experiments play: memories on files that go away, a clock that they move, a plain store to compare with."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from meve._formulas import unit
from meve.evaluation.experiments.memory.facts import Fact
from meve.memory import GovernedMemory, Policy
from meve.memory.policy import PolicyClass
from meve.ports import Embedder, TokenCounter
from meve.testing.fakes import FakeClock

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
K = 5
"""Memories in a context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything there is; enough that most intervals are a few points wide."""

    users: int = 6
    facts: int = 50
    """Of each user."""
    secrets: int = 25
    """Of each user, besides."""
    false: int = 20
    """Facts of each user against which a false one is put in."""
    rounds: int = 8
    """How often each of these is asked for and answered."""
    changing: int = 30
    """Facts of each user that change."""
    changes: int = 3
    """How often each does."""
    talks: int = 8
    turns: int = 100
    """Of each talk."""


QUICK = Sizes(users=2, facts=20, secrets=5, false=6, rounds=2, changing=10, changes=2, talks=2, turns=20)
"""To see that it runs: intervals are of little use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A memory that is open."""

    memory: GovernedMemory
    clock: FakeClock
    file: Path

    def tell(self, user: str, fact: Fact, *, policy_class: PolicyClass = "factual") -> None:
        """Add a fact as a document's, tagged with its topic."""
        self.memory.add(fact.text, user_id=user, source="doc", policy_class=policy_class, id=fact.id, tags=[fact.topic])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the experiments share."""

    embedder: Embedder
    tokens: TokenCounter
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 42
    opened: Callable[..., GovernedMemory] = GovernedMemory.open
    """Makes a memory; another one shows whether an experiment can tell."""

    @contextmanager
    def scene(self, policy: Policy | None = None) -> Iterator[Scene]:
        """A fresh, empty memory; gone afterwards."""
        with TemporaryDirectory() as folder:
            clock, file = FakeClock(START), Path(folder) / "memory.db"
            made = self.opened(file, policy=policy, embedder=self.embedder, tokens=self.tokens, clock=clock)
            with made as memory:
                yield Scene(memory=memory, clock=clock, file=file)

    def rng(self, name: str) -> Random:
        """Chance for one purpose, the same for the same seed."""
        return Random(f"{self.seed} {name}")

    @property
    def users(self) -> list[str]:
        """Their names."""
        return [f"user-{n}" for n in range(self.sizes.users)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a plain store holds."""

    id: str
    text: str
    user: str = ""
    tag: str = ""


@dataclass(slots=True)
class Plain:
    """A plain vector memory: the same embedder, cosine, the top k; no time, no users, no scores."""

    embedder: Embedder
    _entries: list[Entry] = field(default_factory=list)
    _vectors: list[np.ndarray] = field(default_factory=list)

    def add(self, entries: Sequence[Entry]) -> None:
        """Keep these for ever."""
        self._entries += entries
        self._vectors += list(unit(self.embedder.embed_passages([e.text for e in entries])))

    def search(self, question: str, k: int = K, *, user: str = "", tag: str = "") -> list[Entry]:
        """The k nearest, nearest first; of one user and with one tag only, where these aren't empty."""
        rows = [n for n, e in enumerate(self._entries) if (not user or e.user == user) and (not tag or e.tag == tag)]
        if not rows:
            return []
        near = np.array([self._vectors[n] for n in rows]) @ unit(self.embedder.embed_query(question))
        return [self._entries[rows[place]] for place in np.argsort(-near, kind="stable")[:k].tolist()]


def place(ids: Sequence[str], wanted: str, absent: int) -> int:
    """At which place an id stands, from 1 on; `absent` if it doesn't."""
    return ids.index(wanted) + 1 if wanted in ids else absent
