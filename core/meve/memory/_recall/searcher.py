"""Searches one user's memories by the five phases, and caches the results until one of the memories changes."""

import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from meve._fork_safety import ForkSafeLock
from meve._repeating import repeat_rolled_back
from meve._telemetry import count, reported
from meve.calibration.probability_maps import summarize_calibration
from meve.components._sentence_splitter import split_sentences
from meve.components._spelling import correct_spelling
from meve.components.entities import resolve_entities
from meve.components.lexical.analyzers import stemmed_words
from meve.errors import QueryError
from meve.memory._contradiction.updates import RuleUpdateJudge
from meve.memory._maintenance.deduplication import DuplicateJudge
from meve.memory._recall.cache import RecallCache
from meve.memory._recall.important_turns import AnchorTest, ImportantTurns, cached_anchor_test, find_unimportant_turns
from meve.memory._recall.memory_passage import FrameTokens, MemoryPassage
from meve.memory._recall.query import CANDIDATES, MemoryQuery, make_query
from meve.memory._recall.scoring import MemorySource, PolicyScorer, TagPreferenceScorer, VerifiedScorer
from meve.memory._recall.user_index import UserIndex
from meve.memory._recall.user_indexes import UserIndexes
from meve.memory._reports import describe_recall
from meve.memory._runtime import MemoryRuntime
from meve.memory.records import SHARED, MemoryRecord, UserId
from meve.memory.stores._record_store import Changes, RecordStore
from meve.memory.stores._record_transaction import RecordTransaction
from meve.memory.stores.protocol import RecordQuery
from meve.pipeline._retrieval_report import UNLIMITED
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.engine import make_verifier_scorer
from meve.pipeline.phases.budget import SMALL
from meve.pipeline.phases.shorten import find_pieces, rate_by_words, shorten
from meve.pipeline.pipeline import Pipeline
from meve.pipeline.trace import Trace
from meve.ports import Source
from meve.types import Candidate, Query

SIMILAR = 0.7
"""Minimum cosine of memories that a search compares; maintenance has more time, and compares less similar ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Context):
    """A context of one user's memories."""

    id: str
    """The id of this recall in the audit log."""
    user_id: UserId
    standing: tuple[MemoryRecord, ...] = ()
    """The memories that stand in every prompt of this user, the oldest first: instructions, and pinned memories. They
    aren't part of `text`; `GovernedMemory.prompt` and `format_recall` show them."""

    @property
    def note(self) -> str:
        """A sentence on what the reader of the memories should know of how they were chosen; empty for none."""
        return ""

    @property
    def is_numbered(self) -> bool:
        """Whether the text numbers its memories, below their days; in a small budget, each begins with its day."""
        return self.max_tokens > SMALL

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """The memories in the context, in its order."""
        return tuple(p.passage.record for p in self.passages if isinstance(p.passage, MemoryPassage))

    def has_expired(self, now: datetime) -> bool:
        """Return whether a memory of it has expired."""
        return any(record.expired(now) for record in (*self.records, *self.standing))


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Searches the user's own index and the shared one."""

    runtime: MemoryRuntime
    indexes: UserIndexes
    cache: RecallCache
    load: "Load"
    frames: FrameTokens
    is_anchor: AnchorTest = field(default_factory=lambda: cached_anchor_test(resolve_entities()))
    """Decides whether a turn names something."""

    @reported("search_memory", describe_recall)
    def search(self, query: MemoryQuery) -> Recall:
        """Return the memories that answer a query, and log that they were recalled."""
        with self.load.one_more() as heavy:
            if heavy:
                count("meve.shed", {"meve.shed.kind": "search"})
                query = replace(query, candidates=min(query.candidates, self.runtime.policy.limits.busy_candidates))
            while True:
                recall, versions = self._look(query)
                if self.log(query, recall, versions) and not recall.has_expired(self.runtime.clock.now()):
                    return recall
                query = replace(query, scope=replace(query.scope, now=self.runtime.clock.now()))

    def look(self, query: MemoryQuery) -> Recall:
        """Return the memories that answer a query, without logging it."""
        return self._look(query)[0]

    def _look(self, query: MemoryQuery) -> tuple[Recall, tuple[int, ...]]:
        """Return the memories that answer a query, and the versions of the user's and the shared records."""
        drops = self.cache.drops
        indexes = self.indexes.of_all(query.user, SHARED)
        versions = tuple(index.version for index in indexes)
        is_cacheable = not callable(query.scope.where)  # what a function admits may change
        key = query.cache_key if is_cacheable else ()
        cached = self.cache.get(key, versions) if is_cacheable else None
        if cached is not None and not cached.has_expired(self.runtime.clock.now()):
            return replace(cached, id=secrets.token_hex(8), trace=_mark_cached(cached.trace)), versions
        if query.scope.as_of is not None or query.scope.include_superseded:
            only_closed, model = query.scope.as_of is None, indexes[0].model
            indexes += [self._archive(user, model, only_closed=only_closed) for user in (query.user, SHARED)]
        recall = self._run(query, indexes)
        while recall.has_expired(self.runtime.clock.now()):  # during the search
            query = replace(query, scope=replace(query.scope, now=self.runtime.clock.now()))
            key = query.cache_key if is_cacheable else ()
            recall = self._run(query, indexes)
        if is_cacheable:
            self.cache.put(key, versions, recall, drops)
        return recall, versions

    def hides(self, record: MemoryRecord) -> bool:
        """Return whether a search for a user's record leaves it out because another one contradicts it."""
        assert record.user_id is not None
        try:
            query = make_query(
                record.text, record.user_id, policy=self.runtime.policy, now=self.runtime.clock.now(),
                include_private=True, since=datetime.min.replace(tzinfo=UTC), max_tokens=UNLIMITED,
            )  # fmt: skip
        except QueryError:  # no text, or a long one, which contradicts nothing
            return False
        candidates = self.look(query).trace.candidates
        return any(c.id == record.id and c.reason.startswith("contradicted_by:") for c in candidates)

    def count(self, query: MemoryQuery) -> int:
        """Return the number of records that a query may find, the user's own and shared ones, without the archive."""
        count = 0
        for index in self.indexes.of_all(query.user, SHARED):
            with index.lock:
                count += int(index.admitted(query.scope).sum())
        return count

    def find_standing(self, query: MemoryQuery) -> list[MemoryRecord]:
        """Return the user's memories that stand in every prompt, the oldest first."""
        index = self.indexes.of(query.user)
        with index.lock:
            return index.standing(query.standing)

    def look_in_archive(self, query: MemoryQuery) -> Recall:
        """Return the archived memories that answer a query."""
        model = self.indexes.of(query.user).model
        return self._run(query, [self._archive(user, model) for user in (query.user, SHARED)])

    def _archive(self, user: str, model: str, *, only_closed: bool = False) -> UserIndex:
        """Return an index of the archive; reads all archived records each time."""
        index = UserIndex(model)
        records = self.runtime.store.records(RecordQuery(user=user, archived=True))
        records = [s for s in records if s.record.is_closed or not only_closed]
        index.apply(Changes(version=0, is_complete=True, records=records, removed_rows=()))
        return index

    @repeat_rolled_back
    def log(self, query: MemoryQuery, recall: Recall, versions: Sequence[int]) -> bool:
        """Log that the memories of a recall were handed out; if one was erased meanwhile, log nothing, return False.

        Args:
            query: the query.
            recall: the memories.
            versions: those of the user's and of the shared records, when the memories were read or before.
        """
        query_hash = self.runtime.content_hash("query", query.text, query.user)
        events = [
            self.runtime.event(
                query.user, record, "retrieve", f"recall {recall.id}", query.scope.now,
                score=round(float(passage.score or 0.0), 4), **query_hash,
            )
            for record, passage in zip(recall.records, recall.passages, strict=True)
        ]  # fmt: skip
        store = self.runtime.store
        if not events:
            return not self._is_outdated(store, query.user, recall, versions)
        with store.writing(durable=False) as transaction:
            if self._is_outdated(transaction, query.user, recall, versions):
                return False
            transaction.log(*events)
        store.note_recall(query.user, [r.id for r in recall.records if r.user_id is not None], query.scope.now)
        return True

    def _is_outdated(
        self, store: RecordStore | RecordTransaction, user: str, recall: Recall, versions: Sequence[int]
    ) -> bool:
        """Return whether a memory of a recall was erased, or its text changed, after these versions of the records."""
        for key, version in zip((user, SHARED), versions, strict=True):
            given = [*recall.records, *recall.standing]
            texts = {record.id: record.text for record in given if (record.user_id is None) == (key == SHARED)}
            if not texts or store.version(key) == version:
                continue
            kept = store.records(RecordQuery(user=key, archived=None, ids=list(texts)))
            if texts != {stored.record.id: stored.record.text for stored in kept}:
                return True
        return False

    def _run(self, query: MemoryQuery, indexes: list[UserIndex]) -> Recall:
        policy = PolicyScorer(
            policy=self.runtime.policy,
            now=query.scope.now,
            time=query.time,
            shared_scores=self.runtime.store.shared_scores(query.user) if len(indexes[1]) else {},
            touched=partial(self.runtime.store.touched, query.user),
        )
        ranker: PolicyScorer | VerifiedScorer = policy
        calibration: Mapping[str, Any] = {}
        model = indexes[0].model
        embedder = self.runtime.embedder.of(model)
        if query.verify:
            verifier = make_verifier_scorer(self.runtime.verifier, embedder)
            calibration = summarize_calibration(verifier.calibration.to_dict())
            ranker = VerifiedScorer(verifier=verifier, policy=policy, threshold=self.runtime.verify_threshold)
        pipeline = Pipeline(
            sources=[self._source(query, indexes, model)],
            scorer=ranker if query.scope.tags is None else TagPreferenceScorer(inner=ranker),
            fallback=None,
            correct=correct_spelling,
            relate=DuplicateJudge(policy, indexes, self._judge),
            compares_packed=True,
            already_shown=query.seen.contains if query.seen.given else None,
            tokens=self.runtime.tokens,
            cut=self._cut,
            embedder=embedder,
            verifier_name=self.runtime.verifier.name if query.verify else "",
            calibration=calibration,
            clock=self.runtime.clock,
            notes=self._notes(query, indexes),
        )
        try:
            context = pipeline.run(Query(text=query.text), self._config(query))
        except QueryError:  # longer than the embedder's window
            vector = self.runtime.embed_query(query.text, model)
            context = pipeline.run(Query(text=query.text, vector=vector), self._config(query))
        values: dict[str, Any] = {f.name: getattr(context, f.name) for f in fields(Context)}
        with indexes[0].lock:
            standing = tuple(indexes[0].standing(query.standing))
        return Recall(**values, id=secrets.token_hex(8), user_id=query.user_id, standing=standing)

    @property
    def _judge(self) -> RuleUpdateJudge:
        """The judge of maintenance, if it is fast enough for a search; else the rules."""
        updates = self.runtime.updates
        return updates if isinstance(updates, RuleUpdateJudge) else RuleUpdateJudge(self.runtime.contradiction)

    def _source(self, query: MemoryQuery, indexes: list[UserIndex], model: str) -> Source:
        relevance = self.runtime.policy.relevance
        source = MemorySource("memory", indexes, query.scope, relevance, query.time, model, self.frames, query.zone)
        if query.window is None:
            return source
        with indexes[0].lock:
            records = indexes[0].records(query.scope)
        return ImportantTurns(source, find_unimportant_turns(records, self.is_anchor, query.window))

    def _config(self, query: MemoryQuery) -> RetrieverConfig:
        return _make_config(
            candidates=query.candidates + len(query.seen.given),  # seen memories are left out later
            limit=query.limit,
            threshold=self.runtime.policy.ranking.threshold,
            redundancy=1.0 if query.scope.include_superseded else max(SIMILAR, self.runtime.policy.merging.nominate),
            max_tokens=query.max_tokens,
            citations=query.max_tokens > SMALL,
        )

    def _cut(self, query: Query, candidate: Candidate, most: int) -> Candidate:
        """Return a memory reduced to the sentences that share most words with a query, and their neighbours."""
        text = candidate.passage.text
        pieces, headers = find_pieces(text, split_sentences)
        ratings = rate_by_words(query.text, text, pieces, stemmed_words)
        return shorten(candidate, pieces, ratings, self.runtime.tokens, most, least=math.inf, headers=headers)

    def _notes(self, query: MemoryQuery, indexes: list[UserIndex]) -> Mapping[str, Any]:
        return {
            "records": len(indexes[0]),
            "shared": len(indexes[1]),
            "per_user": self.runtime.policy.limits.per_user,
            "shed": query.candidates < CANDIDATES,
            "classes": sorted(query.scope.classes),
            "window": query.window,
            "time": None if query.time is None else query.time.to_dict(),
            "tags": sorted(query.scope.tags) if query.scope.tags is not None else None,
        }


class Load:
    """Counts the searches that are running.

    Args:
        busy: above this number, fewer candidates are ranked and reflection waits.
    """

    def __init__(self, busy: int) -> None:
        self._busy = busy
        self._running = 0
        self._guard = ForkSafeLock()

    @property
    def heavy(self) -> bool:
        """Whether too many searches are running."""
        return self._running > self._busy

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Count a search while it runs, and return whether too many are running with it."""
        with self._guard:
            self._running += 1
            heavy = self.heavy
        try:
            yield heavy
        finally:
            with self._guard:
                self._running -= 1


@lru_cache(maxsize=64)  # its checks take a hundredth of a search
def _make_config(**settings: Any) -> RetrieverConfig:  # noqa: ANN401
    return RetrieverConfig(min_verified=0, fallback_k=0, fill=False, separator="\n", **settings)


def _mark_cached(trace: Trace) -> Trace:
    first, *rest = trace.phases
    return replace(trace, phases=(replace(first, settings={**first.settings, "cached": True}), *rest))
