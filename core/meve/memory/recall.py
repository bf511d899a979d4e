"""Memories as a source of the five phases, and a policy's ranking as their scorer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from meve.errors import ConfigurationError, ModelError
from meve.formulas import cosines
from meve.memory.policy import Policy
from meve.memory.records import MemoryRecord, Opinion, StoredRecord
from meve.memory.shelf import Scope, Shelf
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Passage, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPassage(Passage):
    """A memory that may enter a prompt; shown with its source and its day."""

    record: MemoryRecord

    @property
    def shown(self) -> str:
        """The text, where it is from, and since when it is remembered."""
        return shown(self.text, self.record.source, self.record.created_at)


def shown(text: str, source: str, created_at: datetime) -> str:
    """A memory as it stands in a context.

    >>> from datetime import UTC
    >>> shown("Tomatoes need sun.", "doc", datetime(2026, 5, 1, tzinfo=UTC))
    'Tomatoes need sun. (doc, 2026-05-01)'
    """
    return f"{text} ({source}, {created_at:%Y-%m-%d})"


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Phase 1 over one user's memories, and the shared ones. A user's own record hides a shared one of the same id."""

    name: str
    """`dense` or `lexical`."""
    shelves: Sequence[Shelf]
    """The user's own first."""
    scope: Scope

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k memories of each shelf that the scope admits.

        Raises:
            ConfigurationError: a search by vectors, and the query has none.
        """
        found: dict[str, Candidate] = {}
        for shelf in self.shelves:
            with shelf.lock:
                hits = self._hits(shelf, query, k)
            for stored, score in hits:
                if self.scope.admits(stored.record):
                    found.setdefault(stored.record.id, _candidate(stored, self.name, score))
        return list(found.values())

    def _hits(self, shelf: Shelf, query: Query, k: int) -> list[tuple[StoredRecord, float]]:
        mask = shelf.admitted(self.scope)
        if not mask.any():
            return []
        if self.name == "lexical":
            return shelf.sharing_words(query.text, k, mask)
        if query.vector is None:
            raise ConfigurationError("a search by vectors needs the query's vector: give the memory an embedder")
        return shelf.nearest(query.vector, k, mask)


def _candidate(stored: StoredRecord, name: str, score: float) -> Candidate:
    record = stored.record
    passage = MemoryPassage(id=record.id, text=record.text, metadata=record.metadata, record=record)
    return Candidate(passage=passage, origin=name, scores={name: score}, vector=stored.vector, tokens=stored.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScorer:
    """score = similarity · cosine + reflection · score / 100 + boost · the class's boost, the score decayed till now.

    Source: MemoryArchitect, section C, and `Ranking` for the weights.
    """

    policy: Policy
    now: datetime
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    """Of shared records, by id."""
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Scores, shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if query.vector is None or len(vectors) != len(candidates):
            raise ModelError("ranking memories needs a vector of the query and of each: give the memory an embedder")
        weights = self.policy.ranking
        records = [record_of(c) for c in candidates]
        scores = np.array([self.reflection(record) for record in records]) / 100
        boosts = np.array([self.policy.rule(record.policy_class).boost for record in records])
        similar = cosines(query.vector, np.array(vectors))
        made = weights.similarity * similar + weights.reflection * scores + weights.boost * boosts
        return np.asarray(made, dtype=np.float32)

    def reflection(self, record: MemoryRecord) -> float:
        """A record's score by now, from 0 to 100; a shared one's as this user's answers made it."""
        return decayed(record, self.policy, self.now, self.opinions.get(record.id) if record.user_id is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedScorer:
    """The policy's score of what a verifier lets through; 0 for the rest."""

    verifier: Scorer
    policy: PolicyScorer
    threshold: float
    """The probability that the verifier must give, in [0, 1]."""
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Scores, shape (n,)."""
        passed = np.asarray(self.verifier.score(query, candidates)) >= self.threshold
        return np.asarray(np.where(passed, self.policy.score(query, candidates), 0.0), dtype=np.float32)


def decayed(record: MemoryRecord, policy: Policy, now: datetime, opinion: Opinion | None = None) -> float:
    """A record's reflection score by now, from 0 to 100; idle since it was last recalled, or since it was made."""
    score = record.reflection if opinion is None else opinion.reflection
    touched = record.touched_at if opinion is None else opinion.touched_at
    return policy.reflection.decayed(score, now - max(touched or record.created_at, record.created_at))


def record_of(candidate: Candidate) -> MemoryRecord:
    """The memory that a candidate is.

    Raises:
        ConfigurationError: it isn't one.
    """
    if not isinstance(candidate.passage, MemoryPassage):
        raise ConfigurationError(f"candidate {candidate.id!r} is no memory: rank it with another scorer")
    return candidate.passage.record
