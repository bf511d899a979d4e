"""The search index of one user's memories: vectors, keywords, and the fields that policies filter by, in arrays."""

from bisect import bisect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from meve._fork_safety import ForkSafeLock
from meve._formulas import multiply_rows, normalize
from meve._growable_array import GrowableArray
from meve.errors import StoreCorruptError
from meve.filters import Filter, call_filter
from meve.memory._recall.compared_texts import ComparedTexts
from meve.memory._recall.memory_passage import MemoryPassage
from meve.memory._recall.namespace_index import NamespaceIndex, Positions
from meve.memory._recall.passage_index import PassageIndex
from meve.memory._recall.relevance import Floats, limit_relevance, select_best
from meve.memory._recall.word_index import WordIndex
from meve.memory._timestamps import to_micros
from meve.memory.items.item import Namespace, updated_micros
from meve.memory.policy import PolicyClass, RecordSource, Relevance
from meve.memory.records import MemoryRecord, StoredRecord, validity
from meve.memory.stores._record_store import Changes
from meve.types import FloatArray

NEVER = np.iinfo(np.int64).max
_MAX_COMPONENT = 1e15
"""No embedder makes larger components; their squares would overflow."""
_CLASSES = {name: n for n, name in enumerate(get_args(PolicyClass))}
_SOURCES = {name: n for n, name in enumerate(get_args(RecordSource))}

_NO_VECTOR, _NO_PASSAGES = np.zeros(0, dtype=np.float32), np.zeros((0, 0), dtype=np.float16)
"""Those of the records in an index, whose vectors stand in its arrays alone."""
_AT_ONCE = 4_096
"""The number of records that are added to the arrays at once."""
_MAX_FILTERS = 64
"""The number of filters whose masks a user's index caches."""

Predicate = Callable[[Mapping[str, Any]], bool]
"""Returns whether a record with this metadata is admitted."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A filter of memories, applied before ranking; None means no condition."""

    now: datetime
    classes: Collection[PolicyClass]
    sources: Collection[RecordSource] | None = None
    tags: Collection[str] | None = None
    """Any of these, in lower case."""
    require_tags: bool = False
    """Whether memories without these tags are left out, and not ranked behind those with them."""
    session_id: str | None = None
    since: datetime | None = None
    """Created at this moment or later."""
    include_superseded: bool = False
    """Whether to admit closed records."""
    as_of: datetime | None = None
    """Only records that held at this moment, closed since or not."""
    until: datetime | None = None
    """Created before this moment."""
    where: Filter | Predicate | None = None
    """Required metadata."""

    def admits(self, record: MemoryRecord) -> bool:
        """Return whether a record meets every condition."""
        return (
            not record.expired(self.now)
            and (
                self.include_superseded or not record.is_closed if self.as_of is None else record.was_valid(self.as_of)
            )
            and record.text != ""
            and record.policy_class in self.classes
            and (self.sources is None or record.source in self.sources)
            and (self.tags is None or not set(self.tags).isdisjoint(record.tags))
            and (self.session_id is None or record.session_id == self.session_id)
            and (self.since is None or record.created_at >= self.since)
            and (self.until is None or record.created_at < self.until)
            and self.admits_metadata(record.metadata)
        )

    def admits_metadata(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether metadata meets the condition on it."""
        if self.where is None:
            return True
        return self.where.matches(metadata) if isinstance(self.where, Filter) else call_filter(self.where, metadata)


class Hit(NamedTuple):
    """A record that was found, with its scores, all in [0, 1]."""

    passage: MemoryPassage
    """The record."""
    vector: FloatArray
    """Its vector, of length 1."""
    relevance: float
    cosine: float
    """That of the best passage, if the record has passages."""
    words: float
    """Share of the query's words that it contains, weighted by rarity."""


class UserIndex:
    """The search index of a user's records as of one version of the store. Hold `lock` while using it.

    Args:
        model: the embedder by whose vectors it searches, by its name in the store; records with other vectors are
            found by words alone.
    """

    def __init__(self, model: str) -> None:
        self.version = 0
        self.lock = ForkSafeLock(self._reset_after_fork, reentrant=True)
        self.model = model
        self._reset()

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._positions)

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        return int(self.model.rpartition(" ")[2])

    @property
    def vectors(self) -> int:
        """The number of vectors in memory: one for each record, and one for each passage of a long one."""
        return len(self._units) + len(self._passages)

    def _reset_after_fork(self) -> None:
        self.version = 0  # then the next use reads all records again
        self._reset()

    def _reset(self) -> None:
        self.compared = ComparedTexts()
        self._positions: dict[int, int] = {}
        """By row."""
        self._stored: list[StoredRecord | None] = []
        """By position, as all fields below; None where a record was removed."""
        self._shown: dict[int, MemoryPassage] = {}
        """By position, the records that searches found before, as passages."""
        self._units = GrowableArray(np.zeros((0, self.dimension), dtype=np.float32))
        self._passages = PassageIndex(self.dimension)
        self._fields = GrowableArray(np.zeros((0, 8), dtype=np.int64), by_column=True)
        """Expiry, class, source, creation, last put of an item, row, and from and until when it holds."""
        self._live = GrowableArray(np.zeros(0, dtype=np.bool_))
        self._previous = GrowableArray(np.zeros(0, dtype=np.int64))
        """The position of the record before it in its session; -1 for none."""
        self._next = GrowableArray(np.zeros(0, dtype=np.int64))
        self._classified: dict[frozenset[PolicyClass], Mask] = {}
        """By classes, the positions of their records."""
        self._filtered: dict[str, Mask] = {}
        """By the key of a metadata filter, the positions that meet it."""
        self._standing: set[int] = set()
        """Positions of the records that stand in every prompt."""
        self._tags: dict[str, set[int]] = {}
        self._sessions: dict[str, list[int]] = {}
        self._places = NamespaceIndex()
        self.words = WordIndex()

    def apply(self, changes: Changes) -> None:
        """Apply changes of the store."""
        self._filtered.clear()
        self._classified.clear()
        if changes.is_complete:
            self._reset()
        self._remove([row for row in changes.removed_rows if row in self._positions])
        self._remove([stored.row for stored in changes.records if stored.row in self._positions])
        for first in range(0, len(changes.records), _AT_ONCE):
            self._add(changes.records[first : first + _AT_ONCE])
        self.version = changes.version

    def admitted(self, scope: Scope) -> Mask:
        """Return which positions a scope admits, shape (n,)."""
        n = len(self._stored)
        fields = self._fields.values
        mask: Mask = self._of_classes(frozenset(scope.classes)) & (fields[:, 0] > to_micros(scope.now))
        if scope.as_of is not None:
            mask &= (fields[:, 6] <= to_micros(scope.as_of)) & (fields[:, 7] > to_micros(scope.as_of))
        elif not scope.include_superseded:
            mask &= fields[:, 7] == NEVER
        if scope.sources is not None:
            mask &= np.isin(fields[:, 2], [_SOURCES[name] for name in scope.sources])
        if scope.since is not None:
            mask &= fields[:, 3] >= to_micros(scope.since)
        if scope.until is not None:
            mask &= fields[:, 3] < to_micros(scope.until)
        if scope.tags is not None:
            mask &= among(n, set().union(*(self._tags.get(tag, set()) for tag in scope.tags)))
        if scope.session_id is not None:
            mask &= among(n, self._sessions.get(scope.session_id, []))
        return mask if scope.where is None else mask & self._with_metadata(scope.where, mask)

    def _of_classes(self, classes: frozenset[PolicyClass]) -> Mask:
        """Return which positions hold a record of some classes, shape (n,), cached until a change."""
        if classes not in self._classified:
            of_class = among(len(_CLASSES), [_CLASSES[name] for name in classes])[self._fields.values[:, 1]]
            self._classified[classes] = self._live.values & of_class
        return self._classified[classes]

    def _with_metadata(self, where: Filter | Predicate, mask: Mask) -> Mask:
        """Return which positions have required metadata, shape (n,); a function is asked about those of a mask."""
        if isinstance(where, Filter):
            return self._matching(where)
        return among(len(mask), [p for p in np.flatnonzero(mask).tolist() if self._has_metadata(p, where)])

    def _matching(self, where: Filter) -> Mask:
        """Return which positions have the metadata that a filter requires, shape (n,), cached until a change."""
        if where.key not in self._filtered:
            if len(self._filtered) >= _MAX_FILTERS:
                self._filtered.clear()
            positions = [n for n in self._positions.values() if self._has_metadata(n, where.matches)]
            self._filtered[where.key] = among(len(self._stored), positions)
        return self._filtered[where.key]

    def _has_metadata(self, n: int, admits: Predicate) -> bool:
        stored = self._stored[n]
        return stored is not None and call_filter(admits, stored.record.metadata)

    def items(self, prefix: Namespace, now: datetime) -> Positions:
        """Return the positions of the items under a prefix that haven't expired, in no order."""
        positions = self._places.find_under(prefix)
        alive: Positions = positions[self._fields.values[positions, 0] > to_micros(now)]
        return alive

    def newest(self, positions: Positions) -> Positions:
        """Sort item positions by last change, newest first; ties by row."""
        put, row = self._fields.values[positions, 4:6].T
        return positions[np.lexsort((row, -put))]

    def namespaces(self, now: datetime) -> list[Namespace]:
        """Return the namespaces that hold an item that hasn't expired, in no order."""
        ends = self._fields.values[:, 0]
        return [name for name, positions in self._places.namespaces() if (ends[positions] > to_micros(now)).any()]

    def at(self, position: int) -> StoredRecord | None:
        """Return the record at a position; None if it was removed."""
        return self._stored[position]

    def records(self, scope: Scope) -> list[MemoryRecord]:
        """Return all records that haven't expired, in the order of writing, whatever else the scope asks."""
        alive = (s for s in self._stored if s is not None and not s.record.expired(scope.now))
        return [s.record for s in sorted(alive, key=lambda s: s.row)]

    def standing(self, scope: Scope) -> list[MemoryRecord]:
        """Return the records in a scope that stand in every prompt, the oldest first."""
        stored = [s for n in self._standing if (s := self._stored[n]) is not None and scope.admits(s.record)]
        return [s.record for s in sorted(stored, key=lambda s: (s.record.created_at, s.row))]

    def find_relevant(self, text: str, vector: FloatArray | None, k: int, mask: Mask, rule: Relevance) -> list[Hit]:
        """Return at most k records that a mask admits, the most relevant first, equal ones by id.

        Args:
            text: the query.
            vector: its embedding by the index's model, shape (d,); None to rank by words alone.
            k: the maximum number of records.
            mask: the positions that may be returned, shape (n,); excluded neighbours add no relevance.
            rule: the weights of relevance.
        """
        unit = np.zeros(self.dimension, dtype=np.float32) if vector is None else normalize(vector)
        cosines: Floats = np.maximum(multiply_rows(self._units.values, unit), 0.0).astype(np.float64)
        self._passages.raise_to_best(cosines, unit)
        shares = self.words.shares(text, len(mask)) * mask
        sums = self._add_up(cosines, shares, rule)
        positions = select_best(np.where(mask, sums, -1.0), k)
        scores = limit_relevance(sums[positions]).astype(np.float32)
        shown = map(self._passage, positions.tolist())
        found = zip((-scores).tolist(), shown, positions.tolist(), strict=True)
        best = sorted((score, passage.id, p, passage) for score, passage, p in found if passage is not None)[:k]
        chosen = [p for _, _, p, _ in best]
        of_hits = self._units.values[chosen], cosines[chosen].tolist(), shares[chosen].tolist()
        return [
            Hit(passage, vector, -score, cosine, share)
            for (score, _, _, passage), vector, cosine, share in zip(best, *of_hits, strict=True)
        ]

    def _passage(self, position: int) -> MemoryPassage | None:
        """Return a record as a passage, kept until the record is removed or changed; None if it was removed."""
        passage = self._shown.get(position)
        if passage is None and (stored := self._stored[position]) is not None:
            passage = self._shown[position] = MemoryPassage.of(stored)
        return passage

    def _with_vectors(self, stored: StoredRecord, position: int) -> StoredRecord:
        """Return a record of this index with its vectors, of length 1."""
        vector = self._units.values[position].copy()
        return replace(stored, vector=vector, passages=self._passages.of(position))

    def _add_up(self, cosines: Floats, shares: Floats, rule: Relevance) -> Floats:
        """Return the relevance at all positions before it is limited, with shares of their neighbours' words."""
        words = np.append(rule.words / 2 * shares * np.sqrt(shares), 0.0)  # position -1, for no neighbour, is this 0.0
        around = rule.before * words.take(self._previous.values)
        around += rule.after * words.take(self._next.values)
        sums: Floats = cosines / 2 + words[:-1] + around
        return sums

    def _add(self, records: Sequence[StoredRecord]) -> None:
        added = [stored for stored in records if stored.record.kind != "message"]  # no search returns messages
        if not added:
            return
        first = len(self._stored)
        blank = np.zeros(self.dimension, dtype=np.float32)
        of_model = [stored.model == self.model for stored in added]
        vectors = np.array([s.vector if ours else blank for s, ours in zip(added, of_model, strict=True)])
        parts = [s.passages if ours else s.passages[:0] for s, ours in zip(added, of_model, strict=True)]
        if not (np.abs(vectors) < _MAX_COMPONENT).all() or not all(np.isfinite(each).all() for each in parts):
            raise StoreCorruptError("the vector of a memory is damaged: restore its file from a copy")
        self._units.put(first, normalize(vectors))
        self._fields.put(first, np.array([_field_values(stored) for stored in added], dtype=np.int64))
        self._live.put(first, np.array([s.record.text != "" for s in added]))
        self._previous.put(first, np.full(len(added), -1))
        self._next.put(first, np.full(len(added), -1))
        self._stored += [replace(stored, vector=_NO_VECTOR, passages=_NO_PASSAGES) for stored in added]
        for n, (stored, passages) in enumerate(zip(added, parts, strict=True), start=first):
            self._positions[stored.row] = n
            self._passages.add(n, passages)
            self._places.add(n, stored.record)
            if stored.record.is_standing:
                self._standing.add(n)
            for tag in stored.record.tags:
                self._tags.setdefault(tag, set()).add(n)
            if stored.record.session_id is not None:
                self._join(stored.record.session_id, n)
        self.words.add(first, [stored.record for stored in added])

    def _join(self, session: str, n: int) -> None:
        """Link a record to its neighbours in its session, which is ordered by row."""
        rows = self._fields.values[:, 5]
        positions = self._sessions.setdefault(session, [])
        place = bisect(positions, rows[n], key=rows.__getitem__)
        positions.insert(place, n)
        self._link(positions[place - 1] if place else -1, n)
        self._link(n, positions[place + 1] if place + 1 < len(positions) else -1)

    def _leave(self, session: str, n: int) -> None:
        self._sessions[session].remove(n)
        self._link(int(self._previous.values[n]), int(self._next.values[n]))

    def _link(self, before: int, after: int) -> None:
        if before >= 0:
            self._next.values[before] = after
        if after >= 0:
            self._previous.values[after] = before

    def _remove(self, rows: Sequence[int]) -> None:
        positions = [self._positions.pop(row) for row in rows]
        if not positions:
            return
        for n in positions:
            stored = self._stored[n]
            self._stored[n] = None
            self._shown.pop(n, None)
            self._live.values[n] = False
            self._standing.discard(n)
            self._units.values[n] = 0
            self._passages.remove(n)
            if stored is not None:
                self._places.remove(n, stored.record)
                self.compared.drop(stored.record.text)
                for tag in stored.record.tags:
                    self._tags[tag].discard(n)
                if stored.record.session_id is not None:
                    self._leave(stored.record.session_id, n)
        self.words.remove(positions)
        if len(self._stored) > 64 and len(self._positions) < len(self._stored) / 2:
            self._compact()

    def _compact(self) -> None:
        remaining = [self._with_vectors(stored, n) for n, stored in enumerate(self._stored) if stored is not None]
        self._reset()
        self._add(remaining)


def among(n: int, positions: Collection[int] | Positions) -> Mask:
    """Return a mask of n positions that is True at these, shape (n,)."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[positions if isinstance(positions, np.ndarray) else list(positions)] = True
    return mask


def _field_values(stored: StoredRecord) -> tuple[int, ...]:
    record = stored.record
    begin, end = validity(record)
    return (
        NEVER if record.expires_at is None else to_micros(record.expires_at),
        _CLASSES[record.policy_class],
        _SOURCES[record.source],
        to_micros(record.created_at),
        updated_micros(record) if record.kind == "item" else 0,
        stored.row,
        to_micros(begin),
        NEVER if end is None else to_micros(end),
    )
