"""Ranks recalled memories: candidates from a user's index, and the policy's score for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, tzinfo
from functools import partial

import numpy as np

from meve._frozen import make_frozen
from meve.conversation.outcomes import OutcomeStatistics
from meve.errors import ConfigurationError
from meve.memory._recall.memory_passage import FrameTokens, MemoryPassage
from meve.memory._recall.tellers import find_teller
from meve.memory._recall.time_expressions import TimeWindow
from meve.memory._recall.user_index import Hit, Scope, UserIndex
from meve.memory.policy import Policy, Relevance
from meve.memory.records import MemoryRecord, SharedScore
from meve.pipeline._scorers import VerifierScorer
from meve.types import Candidate, FloatArray, Query

_UNTAGGED = "untagged"
"""Origin of candidates without any of the requested tags."""
_BLANK = {each.name: each.default for each in fields(Candidate)}
_RELEVANCE = "relevance"
"""Name of the relevance among the scores of a candidate."""


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Retrieves a user's memories and shared ones. A user's record hides a shared record with the same id."""

    name: str
    indexes: Sequence[UserIndex]
    """The user's index first, then the shared one."""
    scope: Scope
    rule: Relevance
    time: TimeWindow | None
    """The time that the question names."""
    model: str
    """The embedder of the query's vector, by its name in the store; other vectors aren't compared with it."""
    frames: FrameTokens
    zone: tzinfo = UTC
    """The time zone of the days in the text."""

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k memories in scope from each index, the most relevant first.

        If the question names a time, as many memories that were added then follow. With tags in the scope, as many
        memories without these tags follow, since a tag may be wrong; `TagPreferenceScorer` rejects most of them. A
        scope that requires tags has none of them.
        """
        if query.vector is None:
            raise ConfigurationError("a search of memories needs the query's vector: give the pipeline an embedder")
        candidates: dict[str, Candidate] = {}
        scopes = [self.scope]
        if self.time is not None:
            scopes.append(self._within(self.time))
        if self.scope.tags is not None and not self.scope.require_tags:
            scopes.append(replace(self.scope, tags=None))
        for index in filter(len, self.indexes):
            for scope in scopes:
                with index.lock:
                    mask = index.admitted(scope)
                    vector = query.vector if index.model == self.model else None
                    hits = index.find_relevant(query.text, vector, k, mask, self.rule) if mask.any() else []
                origin = self.name if scope.tags == self.scope.tags else _UNTAGGED
                for hit in hits:
                    if hit.passage.id not in candidates:
                        candidates[hit.passage.id] = _to_candidate(hit, origin, self.model, self.frames, self.zone)
        return list(candidates.values())

    def word_counter(self, query: Query) -> Callable[[str], int]:  # noqa: ARG002
        """Return a function that tells in how many texts of the memories that a search may find a word stands."""
        scope = self.scope if self.scope.require_tags else replace(self.scope, tags=None)
        counters = [
            (index, index.version, index.words.word_counter(partial(index.admitted, scope)))
            for index in filter(len, self.indexes)
        ]

        def count_texts(word: str) -> int:
            count = 0
            for index, version, counter in counters:
                with index.lock:
                    if index.version == version:  # else the records are others
                        count += counter(word)
            return count

        return count_texts

    def _within(self, time: TimeWindow) -> Scope:
        since, until = self.scope.since or time.since, self.scope.until or time.until
        return replace(self.scope, since=max(since, time.since), until=min(until, time.until))


def _to_candidate(hit: Hit, origin: str, model: str, frames: FrameTokens, zone: tzinfo) -> Candidate:
    passage, vector, relevance, cosine, words = hit
    if passage.zone is not zone:  # the index keeps it in UTC
        passage = replace(passage, zone=zone)
    if not passage.as_candidate:
        tokens = passage.tokens - frames.count(passage.record)
        passage.as_candidate.update(_BLANK, tokens=tokens)
    given = passage.as_candidate.copy()
    given["passage"], given["origin"] = passage, origin
    given["scores"] = {_RELEVANCE: relevance, "dense": cosine, "lexical": words}
    if passage.model == model:
        given["vector"] = vector
    return make_frozen(Candidate, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScorer:
    """Scores memories by the weights of `Ranking`.

    score = similarity · relevance + reflection · reflection score / 100 + boost · boost of the class
        + outcome · (2 · expected outcome - 1), at least 0

    Source: MemoryArchitect, section C.
    """

    policy: Policy
    now: datetime
    time: TimeWindow | None = None
    """The time that the question names; `Relevance.said_then` prefers memories that were added then."""
    shared_scores: Mapping[str, SharedScore] = field(default_factory=dict)
    """The user's scores of shared records, by record id."""
    touched: Callable[[Mapping[str, int]], Mapping[int, datetime]] = field(default=lambda _: {})
    """Returns by row when the user's records of these ids and rows were last recalled. Indexes lack it, since a
    recall changes no version."""
    name: str = "policy"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return scores, shape (n,)."""
        weights = self.policy.ranking
        passages = [_get_passage(c) for c in candidates]
        records = [passage.record for passage in passages]
        reflections = np.array(self._reflections(passages)) / 100
        of_class = {name: rule.boost for name, rule in self.policy.classes.items()}
        boosts = np.array([of_class[record.policy_class] for record in records])
        relevances = np.array(_get_relevances(candidates))
        if self.time is not None:
            said_then = np.array([self.time.contains(record.created_at) for record in records])
            relevances += self.policy.relevance.said_then * said_then
        if teller := find_teller(query.text):
            by_assistant = np.array([record.source == "chat_assistant" for record in records])
            sign = 1 if teller == "chat_assistant" else -1
            relevances += sign * self.policy.relevance.teller * by_assistant
        scores = weights.similarity * relevances + weights.reflection * reflections + weights.boost * boosts
        if weights.outcome:
            scores += weights.outcome * (2 * np.array([self._outcomes(record).expected for record in records]) - 1)
        return np.asarray(np.maximum(scores, 0.0), dtype=np.float32)

    def _reflections(self, passages: Sequence[MemoryPassage]) -> list[float]:
        """Return the current reflection scores, from 0 to 100; the store tells when idle records were last recalled."""
        begin = self.now - self.policy.reflection.idle
        own = [p for p in passages if p.record.user_id is not None]
        idle = [p for p in own if (p.record.touched_at or p.record.created_at) < begin]
        if not idle and len(own) == len(passages):
            return [p.record.reflection for p in passages]  # no score has decayed
        rows = {p.id: p.row for p in idle if not p.record.archived}
        touched = self.touched(rows) if rows else {}
        return [
            decay_reflection(
                p.record,
                self.policy,
                self.now,
                self._shared(p.record),
                touched.get(p.row) if p.record.user_id is not None and not p.record.archived else None,
            )
            for p in passages
        ]

    def reflection(self, record: MemoryRecord) -> float:
        """Return the current reflection score of a record, from 0 to 100; of a shared record, this user's."""
        return decay_reflection(record, self.policy, self.now, self._shared(record))

    def _outcomes(self, record: MemoryRecord) -> OutcomeStatistics:
        return (self._shared(record) or record).outcomes

    def _shared(self, record: MemoryRecord) -> SharedScore | None:
        return self.shared_scores.get(record.id) if record.user_id is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedScorer:
    """Scores memories by the policy; those that a verifier rejects get -1, below any threshold."""

    verifier: VerifierScorer
    policy: PolicyScorer
    threshold: float
    """Minimum probability of the verifier, in [0, 1]."""
    name: str = "policy"

    @property
    def evidence(self) -> str:
        """The name of the evidence model in use; empty for none."""
        return self.verifier.evidence

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return scores, shape (n,)."""
        return self.judge(query, candidates)[0]

    def judge(self, query: Query, candidates: Sequence[Candidate]) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """Return scores, shape (n,), and the verifier's probabilities and their inputs by name, each of shape (n,)."""
        probabilities, inputs = self.verifier.judge(query, candidates)
        scores = np.where(probabilities >= self.threshold, self.policy.score(query, candidates), -1.0)
        return np.asarray(scores, dtype=np.float32), {**inputs, self.verifier.name: probabilities}


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPreferenceScorer:
    """Rejects memories without a requested tag, with -1, unless they outrank every memory with one."""

    inner: PolicyScorer | VerifiedScorer
    name: str = "policy"

    @property
    def evidence(self) -> str:
        """The name of the evidence model in use; empty for none."""
        return self.inner.evidence if isinstance(self.inner, VerifiedScorer) else ""

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return scores, shape (n,)."""
        return self.judge(query, candidates)[0]

    def judge(self, query: Query, candidates: Sequence[Candidate]) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """Return scores, shape (n,), and what the inner scorer tells by name, each of shape (n,)."""
        inputs: Mapping[str, FloatArray] = {}
        if isinstance(self.inner, VerifiedScorer):
            scores, inputs = self.inner.judge(query, candidates)
        else:
            scores = self.inner.score(query, candidates)
        untagged = np.array([candidate.origin == _UNTAGGED for candidate in candidates], dtype=np.bool_)
        best_tagged = scores[~untagged].max(initial=-1.0)
        return np.where(untagged & (scores <= best_tagged), np.float32(-1.0), scores), inputs


def decay_reflection(
    record: MemoryRecord,
    policy: Policy,
    now: datetime,
    shared: SharedScore | None = None,
    touched_at: datetime | None = None,
) -> float:
    """Return the current reflection score of a record, from 0 to 100. It decays from the last recall or creation on.

    Args:
        record: the record.
        policy: tells how scores decay.
        now: the moment.
        shared: the user's score of a shared record.
        touched_at: the last recall, if it is later than the record says.
    """
    current = shared or record
    last = touched_at or current.touched_at or record.created_at
    return policy.reflection.decay(current.reflection, now - max(last, record.created_at))


def _get_relevances(candidates: Sequence[Candidate]) -> list[float]:
    for candidate in candidates:
        if _RELEVANCE not in candidate.scores:
            raise ConfigurationError(f"candidate {candidate.id!r} has no {_RELEVANCE} score: use another scorer")
    return [candidate.scores[_RELEVANCE] for candidate in candidates]


def _get_passage(candidate: Candidate) -> MemoryPassage:
    if not isinstance(candidate.passage, MemoryPassage):
        raise ConfigurationError(f"candidate {candidate.id!r} is no memory: use another scorer")
    return candidate.passage
