"""A recall: one user's memories through the five phases, cached until something changes."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from meve.calibration.maps import summarize_calibration
from meve.components.entities import resolve_entities
from meve.memory._maintenance.deduplication import Relating
from meve.memory._recall.important_turns import AnchorTest, ImportantTurns, cached_anchor_test, find_unimportant_turns
from meve.memory._recall.query import CANDIDATES, Asked
from meve.memory._recall.scoring import MemoryPassage, MemorySource, PolicyScorer, TagPreferenceScorer, VerifiedScorer
from meve.memory._recall.user_index import Shelf, Shelves
from meve.memory._runtime import Kit
from meve.memory.records import SHARED, MemoryRecord, UserId
from meve.memory.stores.protocol import Changes
from meve.pipeline._scorers import VerifierScorer
from meve.pipeline.config import RetrieverConfig
from meve.pipeline.context import Context
from meve.pipeline.pipeline import Pipeline
from meve.pipeline.trace import Trace
from meve.ports import Scorer, Source
from meve.types import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Context):
    """A context of memories, and whose."""

    id: str
    """Names this recall in the audit log."""
    user_id: UserId

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """The memories that stand in it, in its order."""
        return tuple(p.passage.record for p in self.passages if isinstance(p.passage, MemoryPassage))


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """Answers questions from shelves."""

    kit: Kit
    shelves: Shelves
    cache: "RecallCache"
    load: "Load"
    names: AnchorTest = field(default_factory=lambda: cached_anchor_test(resolve_entities()))
    """Whether a turn names something."""

    def search(self, asked: Asked) -> Recall:
        """The memories that answer; the log tells that they were recalled.

        Raises:
            QueryError: a blank question.
            ModelError: a model failed.
        """
        with self.load.one_more() as heavy:
            if heavy:  # fewer are ranked; isolation and expiry hold as ever
                asked = replace(asked, candidates=min(asked.candidates, self.kit.policy.limits.busy_candidates))
            recall = self._noted(asked, self.look(asked))
            while any(r.expired(now := self.kit.clock.now()) for r in recall.records):  # while the log was written
                asked = replace(asked, scope=replace(asked.scope, now=now))
                recall = self._noted(asked, self.look(asked))
            return recall

    def look(self, asked: Asked) -> Recall:
        """The memories that answer, without a trace in log and records.

        Raises:
            QueryError: a blank question.
            ModelError: a model failed.
        """
        shelves = [self.shelves.of(asked.user), self.shelves.of(SHARED)]
        versions = tuple(shelf.version for shelf in shelves)
        known = self.cache.find(asked.key, versions)
        if known is not None and not any(r.expired(self.kit.clock.now()) for r in known.records):
            return replace(known, id=_recall_id(), trace=_cached(known.trace))
        found = self._run(asked, shelves)
        while any(r.expired(self.kit.clock.now()) for r in found.records):  # while it ran
            asked = replace(asked, scope=replace(asked.scope, now=self.kit.clock.now()))
            found = self._run(asked, shelves)
        self.cache.keep(asked.key, versions, found)
        return found

    def look_in_archive(self, asked: Asked) -> Recall:
        """Likewise the archived ones, which no search finds; read anew each time."""
        dimension = self.kit.embedder.dimension
        packed = Shelf(dimension)
        records = list(enumerate(self.kit.store.archived(asked.user)))
        packed.apply(Changes(version=0, whole=True, records=records, gone=()))
        return self._run(asked, [packed, Shelf(dimension)])

    def forget(self, user: str) -> None:
        """Let go of all that memory holds of a user's records; of everybody's recalls, for the shared space's key."""
        self.shelves.forget(user)
        self.cache.forget(user)

    def _noted(self, asked: Asked, recall: Recall) -> Recall:
        """In the log, and in the records: recalled now."""
        query = self.kit.recognised("query", asked.text)
        events = [
            self.kit.event(
                asked.user, record, "retrieve", f"recall {recall.id}", asked.scope.now,
                score=round(float(passage.score or 0.0), 4), **query,
            )
            for record, passage in zip(recall.records, recall.passages, strict=True)
        ]  # fmt: skip
        if events:
            with self.kit.store.writing(durable=False) as transaction:
                transaction.touch(asked.user, [r.id for r in recall.records if r.user_id is not None], asked.scope.now)
                transaction.log(*events)
        return recall

    def _run(self, asked: Asked, shelves: list[Shelf]) -> Recall:
        policy = PolicyScorer(
            policy=self.kit.policy,
            now=asked.scope.now,
            opinions=self.kit.store.opinions(asked.user) if len(shelves[1]) else {},
            touched=partial(self.kit.store.touched, asked.user),
        )
        scorer: Scorer = policy
        if asked.verify:
            verifier = VerifierScorer(self.kit.verifier, self.kit.embedder)
            scorer = VerifiedScorer(verifier=verifier, policy=policy, threshold=self.kit.verify_threshold)
        if asked.scope.tags is not None:
            scorer = TagPreferenceScorer(inner=scorer)
        pipeline = Pipeline(
            sources=[self._source(asked, shelves)],
            scorer=scorer,
            fallback=None,
            relate=Relating(policy, shelves, self.kit.contradiction),
            already_shown=asked.shown.holds if asked.shown.given else None,
            tokens=self.kit.tokens,
            embedder=self.kit.embedder,
            verifier_name=self.kit.verifier.name if asked.verify else "",
            calibration=summarize_calibration(self.kit.verifier.calibration.to_dict()) if asked.verify else {},
            clock=self.kit.clock,
            notes=self._notes(asked, shelves),
        )
        context = pipeline.run(Query(text=asked.text), self._config(asked))
        return Recall(**_values(context), id=_recall_id(), user_id=asked.user_id)

    def _source(self, asked: Asked, shelves: list[Shelf]) -> Source:
        source = MemorySource("memory", shelves, asked.scope, self.kit.policy.relevance)
        if asked.window is None:
            return source
        with shelves[0].lock:
            records = shelves[0].records(asked.scope)
        return ImportantTurns(source, find_unimportant_turns(records, self.names, asked.window))

    def _config(self, asked: Asked) -> RetrieverConfig:
        ranking = self.kit.policy.ranking
        return RetrieverConfig(
            candidates=asked.candidates + len(asked.shown.given),  # what is shown takes no place
            limit=asked.limit,
            threshold=ranking.threshold,
            min_verified=0,
            fallback_k=0,
            redundancy=self.kit.policy.merging.similarity,
            max_tokens=asked.max_tokens,
            separator="\n",
            citations=True,
        )

    def _notes(self, asked: Asked, shelves: list[Shelf]) -> Mapping[str, Any]:
        return {
            "records": len(shelves[0]),
            "shared": len(shelves[1]),
            "per_user": self.kit.policy.limits.per_user,
            "shed": asked.candidates < CANDIDATES,
            "classes": sorted(asked.scope.classes),
            "window": asked.window,
            "tags": sorted(asked.scope.tags) if asked.scope.tags is not None else None,
        }


class Load:
    """How many recalls are running, and whether that is too many.

    Args:
        busy: from how many on fewer candidates are ranked, and reflection waits.
    """

    def __init__(self, busy: int) -> None:
        self._busy = busy
        self._running = 0
        self._guard = threading.Lock()

    @property
    def heavy(self) -> bool:
        """Whether there are too many by now."""
        return self._running > self._busy

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Count one in while it lasts; whether there are too many with it."""
        with self._guard:
            self._running += 1
            heavy = self.heavy
        try:
            yield heavy
        finally:
            with self._guard:
                self._running -= 1


class RecallCache:
    """The recalls of late, until a memory of their user changes.

    Args:
        most: how many; 0 for none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[tuple[Any, ...], tuple[tuple[int, ...], Recall]] = OrderedDict()
        self._guard = threading.Lock()
        self.hits = 0
        self.misses = 0

    def find(self, key: tuple[Any, ...], versions: tuple[int, ...]) -> Recall | None:
        """What was recalled for this question, if nothing has changed since."""
        with self._guard:
            found = self._held.get(key)
            if found is None or found[0] != versions:
                self._held.pop(key, None)
                self.misses += 1
                return None
            self._held.move_to_end(key)
            self.hits += 1
            return found[1]

    def keep(self, key: tuple[Any, ...], versions: tuple[int, ...], recall: Recall) -> None:
        """Remember a recall."""
        with self._guard:
            self._held[key] = (versions, recall)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def forget(self, user: str) -> None:
        """Let go of all that holds a user's memories; of everything, for the shared space's key."""
        with self._guard:
            for key in [key for key in self._held if user == SHARED or key[0] == user]:
                del self._held[key]


def _cached(trace: Trace) -> Trace:
    """The account of a recall that was made before, and says so."""
    first, *rest = trace.phases
    return replace(trace, phases=(replace(first, settings={**first.settings, "cached": True}), *rest))


def _recall_id() -> str:
    return secrets.token_hex(8)


def _values(context: Context) -> dict[str, Any]:
    return {f.name: getattr(context, f.name) for f in fields(Context)}
