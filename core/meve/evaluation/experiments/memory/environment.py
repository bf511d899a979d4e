"""The environment of memory experiments: temporary memories with a fake clock, and a plain store to compare with."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from meve._formulas import normalize
from meve.evaluation.experiments.memory.synthetic_facts import UserFact
from meve.memory import GovernedMemory, Policy
from meve.memory._recall.searcher import Recall
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
    """The number of facts of each user."""
    secrets: int = 25
    """The number of secrets of each user, in addition to facts."""
    false: int = 20
    """The number of facts of each user that get a false counterpart."""
    rounds: int = 8
    """The number of times that each of these is asked for and answered."""
    changing: int = 30
    """The number of facts of each user that change."""
    changes: int = 3
    """The number of changes of each of them."""
    pairs: int = 80
    """The most pairs of statements of each kind and half."""
    stories: int = 30
    """The most stories of each half."""
    talks: int = 8
    turns: int = 100
    """The number of turns of each conversation."""


QUICK = Sizes(
    users=2, facts=20, secrets=5, false=6, rounds=2, changing=10, changes=2, pairs=20, stories=3, talks=2, turns=20
)
"""Sizes for a quick check; the intervals are wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySandbox:
    """An open memory with its clock and its file."""

    memory: GovernedMemory
    clock: FakeClock
    file: Path

    def add_fact(self, fact: UserFact, *, policy_class: PolicyClass = "factual", tag: str | None = None) -> None:
        """Add a fact from a document, tagged with its topic unless another tag is given."""
        self.memory.add(
            fact.text, user_id=fact.user, source="doc", policy_class=policy_class, id=fact.id, tags=[tag or fact.topic]
        )

    def recall_ids(self, fact: UserFact, limit: int = K) -> list[str]:
        """Return the ids that the user's question recalls, best first, without recording the recall."""
        return [each.record.id for each in self.memory.explain(fact.question, user_id=fact.user, limit=limit)]

    def search(self, fact: UserFact, *, tags: Sequence[str] | None = None, include_private: bool = False) -> Recall:
        """Return the `K` best memories for the user's question."""
        return self.memory.search(fact.question, user_id=fact.user, limit=K, tags=tags, include_private=include_private)

    def read_by_question(self, user: str, question: str) -> dict[str, str]:
        """Return the text that each access path returns for a question, private memories included, by path."""
        recall = self.memory.search(question, user_id=user, include_private=True, limit=None, max_tokens=100_000)
        explanations = self.memory.explain(question, user_id=user, limit=100)
        return {
            "search": recall.text,
            "prompt": self.memory.prompt(question, user_id=user, max_tokens=4_096, include_private=True).text,
            "explain": " ".join(each.record.text for each in explanations),
        }

    def read_all(self, user: str) -> dict[str, str]:
        """Return the text of the list, archived memories included, and of the export of a user."""
        return {
            "list": " ".join(
                record.text for record in self.memory.list(user_id=user, include_archived=True, include_messages=True)
            ),
            "export": json.dumps(self.memory.export(user_id=user), default=str, ensure_ascii=False),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The models, sizes and seed that the experiments share."""

    embedder: Embedder
    tokens: TokenCounter
    sizes: Sizes = field(default_factory=Sizes)
    seed: int = 42
    data: Path | None = None
    """The folder of evaluation sets; the experiment on extraction needs it."""
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

    def with_embedder(self, embedder: Embedder) -> "Environment":
        """Return the same environment with another embedder."""
        return replace(self, embedder=embedder)

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

    def add_facts(self, facts: Sequence[UserFact]) -> None:
        """Store facts, tagged with their topics."""
        self.add([PlainEntry(id=fact.id, text=fact.text, user=fact.user, tag=fact.topic) for fact in facts])

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
