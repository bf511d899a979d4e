"""Memories as a source of the five phases, and a policy's ranking as their scorer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from meve.errors import ConfigurationError
from meve.memory._recall.user_index import Hit, Scope, Shelf
from meve.memory.policy import Likeness, Policy
from meve.memory.records import MemoryRecord, Opinion
from meve.ports import Scorer
from meve.types import Candidate, FloatArray, Passage, Query

UNTAGGED = "untagged"
"""The origin of a memory that hasn't the tags that were asked for."""
LIKENESS = "likeness"
"""The name of the score that says how like a memory is to the question."""


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
    shelves: Sequence[Shelf]
    """The user's own first."""
    scope: Scope
    rule: Likeness

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k memories of each shelf that the scope admits, likest first; as many again if it asks for tags.

        Those without the tags come after those with them: a tag may be wrong, and `TagsFirst` settles which stay.

        Raises:
            ConfigurationError: the query has no vector.
        """
        if query.vector is None:
            raise ConfigurationError("a search in memory needs the query's vector: give the memory an embedder")
        found: dict[str, Candidate] = {}
        scopes = [self.scope] if self.scope.tags is None else [self.scope, replace(self.scope, tags=None)]
        for shelf in self.shelves:
            for scope in scopes:
                with shelf.lock:
                    mask = shelf.admitted(scope)
                    hits = shelf.alike(query.text, query.vector, k, mask, self.rule) if mask.any() else []
                for hit in hits:
                    if scope.admits(hit.stored.record):
                        name = self.name if scope is self.scope else UNTAGGED
                        found.setdefault(hit.stored.record.id, _candidate(hit, name))
        return list(found.values())


def _candidate(hit: Hit, name: str) -> Candidate:
    record = hit.stored.record
    passage = MemoryPassage(id=record.id, text=record.text, metadata=record.metadata, record=record)
    scores = {LIKENESS: hit.likeness, "dense": hit.cosine, "lexical": hit.words}
    return Candidate(passage=passage, origin=name, scores=scores, vector=hit.stored.vector, tokens=hit.stored.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScorer:
    """score = similarity · likeness + reflection · score / 100 + boost · the class's boost, the score decayed till now.

    Source: MemoryArchitect, section C, and `Ranking` for the weights.
    """

    policy: Policy
    now: datetime
    opinions: Mapping[str, Opinion] = field(default_factory=dict)
    """Of shared records, by id."""
    touched: Callable[[Sequence[str]], Mapping[str, datetime]] = field(default=lambda _: {})
    """When records of the user's own were last recalled, by id: asked of those that seem idle, since a recall is no
    change of a record."""
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:  # noqa: ARG002
        """Scores, shape (n,).

        Raises:
            ConfigurationError: a candidate is no memory, or comes without its likeness.
        """
        weights = self.policy.ranking
        records = self._touched([record_of(c) for c in candidates])
        scores = np.array([self.reflection(record) for record in records]) / 100
        boosts = np.array([self.policy.rule(record.policy_class).boost for record in records])
        similar = np.array([likeness_of(c) for c in candidates])
        made = weights.similarity * similar + weights.reflection * scores + weights.boost * boosts
        return np.asarray(made, dtype=np.float32)

    def _touched(self, records: list[MemoryRecord]) -> list[MemoryRecord]:
        begin = self.now - self.policy.reflection.idle
        idle = [r.id for r in records if r.user_id is not None and (r.touched_at or r.created_at) < begin]
        when = self.touched(idle) if idle else {}
        return [replace(r, touched_at=when[r.id]) if r.user_id is not None and r.id in when else r for r in records]

    def reflection(self, record: MemoryRecord) -> float:
        """A record's score by now, from 0 to 100; a shared one's as this user's answers made it."""
        return decayed(record, self.policy, self.now, self.opinions.get(record.id) if record.user_id is None else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedScorer:
    """The policy's score of what a verifier lets through; -1, below any threshold, for the rest."""

    verifier: Scorer
    policy: PolicyScorer
    threshold: float
    """The probability that the verifier must give, in [0, 1]."""
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Scores, shape (n,)."""
        passed = np.asarray(self.verifier.score(query, candidates)) >= self.threshold
        return np.asarray(np.where(passed, self.policy.score(query, candidates), -1.0), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsFirst:
    """Of memories without the tags only those that score above every one with them; -1 for the rest."""

    inner: Scorer
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Scores, shape (n,)."""
        scores = np.asarray(self.inner.score(query, candidates), dtype=np.float32)
        without = np.array([candidate.origin == UNTAGGED for candidate in candidates], dtype=np.bool_)
        best = scores[~without].max(initial=-1.0)
        return np.asarray(np.where(without & (scores <= best), -1.0, scores), dtype=np.float32)


def decayed(record: MemoryRecord, policy: Policy, now: datetime, opinion: Opinion | None = None) -> float:
    """A record's reflection score by now, from 0 to 100; idle since it was last recalled, or since it was made."""
    score = record.reflection if opinion is None else opinion.reflection
    touched = record.touched_at if opinion is None else opinion.touched_at
    return policy.reflection.decayed(score, now - max(touched or record.created_at, record.created_at))


def likeness_of(candidate: Candidate) -> float:
    """How like a memory is to the question, in [0, 1].

    Raises:
        ConfigurationError: its source doesn't say.
    """
    if LIKENESS not in candidate.scores:
        raise ConfigurationError(f"candidate {candidate.id!r} comes without its likeness: rank it with another scorer")
    return candidate.scores[LIKENESS]


def record_of(candidate: Candidate) -> MemoryRecord:
    """The memory that a candidate is.

    Raises:
        ConfigurationError: it isn't one.
    """
    if not isinstance(candidate.passage, MemoryPassage):
        raise ConfigurationError(f"candidate {candidate.id!r} is no memory: rank it with another scorer")
    return candidate.passage.record
