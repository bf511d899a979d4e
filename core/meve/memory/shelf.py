"""One user's memories as they are searched: vectors, words, and what a policy asks of each, in arrays."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

import numpy as np
import numpy.typing as npt

from meve.formulas import cosines
from meve.memory.policy import PolicyClass, Source
from meve.memory.records import MemoryRecord, StoredRecord
from meve.memory.stores.ports import Changes, MemoryStore
from meve.memory.stores.rows import micros
from meve.parts.lexical.bm25 import Bm25Index
from meve.types import FloatArray

NEVER = np.iinfo(np.int64).max
_CLASSES = {name: n for n, name in enumerate(get_args(PolicyClass))}
_SOURCES = {name: n for n, name in enumerate(get_args(Source))}

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which memories may be recalled, before any likeness is looked at. None asks for nothing."""

    now: datetime
    classes: Collection[PolicyClass]
    sources: Collection[Source] | None = None
    tags: Collection[str] | None = None
    """Any of these; in lower case."""
    session_id: str | None = None
    since: datetime | None = None
    """Created from then on."""

    def admits(self, record: MemoryRecord) -> bool:
        """The same question, of one record."""
        return (
            not record.expired(self.now)
            and record.superseded_by is None
            and record.policy_class in self.classes
            and (self.sources is None or record.source in self.sources)
            and (self.tags is None or not set(self.tags).isdisjoint(record.tags))
            and (self.session_id is None or record.session_id == self.session_id)
            and (self.since is None or record.created_at >= self.since)
        )


class Shelf:
    """A user's records as of one version of the store. Not safe to share: `Shelves` locks it.

    Args:
        dimension: the length d of a vector.
    """

    def __init__(self, dimension: int) -> None:
        self.version = 0
        self.lock = threading.RLock()
        self._dimension = dimension
        self._empty()

    def __len__(self) -> int:
        """How many records it holds."""
        return len(self._at)

    def _empty(self) -> None:
        self._at: dict[int, int] = {}
        """Row to position."""
        self._stored: list[StoredRecord | None] = []
        self._vectors = np.zeros((0, self._dimension), dtype=np.float32)
        self._facts = np.zeros((0, 4), dtype=np.int64)
        """Expiry, class, source, creation."""
        self._live = np.zeros(0, dtype=np.bool_)
        self._tags: dict[str, set[int]] = {}
        self._sessions: dict[str, set[int]] = {}
        self.words = Bm25Index()

    def apply(self, changes: Changes) -> None:
        """Take over what became of the records."""
        if changes.whole:
            self._empty()
        self._drop([row for row in changes.gone if row in self._at])
        self._drop([row for row, _ in changes.records if row in self._at])
        self._take(changes.records)
        self.version = changes.version

    def admitted(self, scope: Scope) -> Mask:
        """Which positions a scope admits, shape (n,)."""
        n = len(self._stored)
        facts = self._facts[:n]
        mask: Mask = self._live[:n] & (facts[:, 0] > micros(scope.now))
        if len(scope.classes) < len(_CLASSES):
            mask &= np.isin(facts[:, 1], [_CLASSES[name] for name in scope.classes])
        if scope.sources is not None:
            mask &= np.isin(facts[:, 2], [_SOURCES[name] for name in scope.sources])
        if scope.since is not None:
            mask &= facts[:, 3] >= micros(scope.since)
        if scope.tags is not None:
            mask &= _among(n, set().union(*(self._tags.get(tag, set()) for tag in scope.tags)))
        if scope.session_id is not None:
            mask &= _among(n, self._sessions.get(scope.session_id, set()))
        return mask

    def nearest(self, vector: FloatArray, k: int, mask: Mask) -> list[tuple[StoredRecord, float]]:
        """At most k records by cosine, best first, equal ones by id."""
        return self._best(np.flatnonzero(mask), cosines(vector, self._vectors[: len(mask)][mask]), k)

    def sharing_words(self, text: str, k: int, mask: Mask) -> list[tuple[StoredRecord, float]]:
        """At most k records by BM25, best first, equal ones by id."""
        allowed = None if mask.all() else np.flatnonzero(mask)
        found, scores = self.words.search(text, k, allowed)
        return self._best(found, scores, k)

    def _best(self, positions: npt.NDArray[np.int64], scores: FloatArray, k: int) -> list[tuple[StoredRecord, float]]:
        if len(scores) > 4 * k:
            cut = np.partition(scores, len(scores) - k)[len(scores) - k]
            chosen = scores >= cut
            positions, scores = positions[chosen], scores[chosen]
        found = [
            (stored, s) for n, s in zip(positions.tolist(), scores.tolist(), strict=True) if (stored := self._stored[n])
        ]
        return sorted(found, key=lambda pair: (-pair[1], pair[0].record.id))[:k]

    def _take(self, found: Sequence[tuple[int, StoredRecord]]) -> None:
        if not found:
            return
        first = len(self._stored)
        self._reserve(first + len(found))
        for n, (row, stored) in enumerate(found, start=first):
            record = stored.record
            self._at[row] = n
            self._stored.append(stored)
            self._vectors[n] = stored.vector
            expires = NEVER if record.expires_at is None else micros(record.expires_at)
            self._facts[n] = (
                expires,
                _CLASSES[record.policy_class],
                _SOURCES[record.source],
                micros(record.created_at),
            )
            self._live[n] = record.superseded_by is None
            for tag in record.tags:
                self._tags.setdefault(tag, set()).add(n)
            if record.session_id is not None:
                self._sessions.setdefault(record.session_id, set()).add(n)
        positions = np.arange(first, first + len(found))
        self.words.add(positions, [stored.record.text for _, stored in found])

    def _drop(self, rows: Sequence[int]) -> None:
        positions = [self._at.pop(row) for row in rows]
        for n in positions:
            stored = self._stored[n]
            self._stored[n] = None
            self._live[n] = False
            self._vectors[n] = 0
            if stored is not None:
                for tag in stored.record.tags:
                    self._tags[tag].discard(n)
                if stored.record.session_id is not None:
                    self._sessions[stored.record.session_id].discard(n)
        if positions:
            self.words.remove(np.array(positions))
        if len(self._stored) > 64 and len(self._at) < len(self._stored) / 2:
            self._compact()

    def _compact(self) -> None:
        kept = [(row, stored) for row, n in self._at.items() if (stored := self._stored[n])]
        self._empty()
        self._take(kept)

    def _reserve(self, size: int) -> None:
        if size > len(self._live):
            room = max(size, 2 * len(self._live), 64)
            self._vectors = _grown(self._vectors, room)
            self._facts = _grown(self._facts, room)
            self._live = _grown(self._live, room)


class Shelves:
    """The users' shelves that are in memory, as fresh as the store; those asked for least recently go first.

    Args:
        store: what they are read from.
        dimension: the length of a vector.
        most: records that are held, over all users; a single user's shelf is held however large.
    """

    def __init__(self, store: MemoryStore, dimension: int, most: int) -> None:
        self._store = store
        self._dimension = dimension
        self._most = most
        self._held: OrderedDict[str, Shelf] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, user: str) -> Shelf:
        """A user's shelf, with all that the store holds by now."""
        with self._guard:
            shelf = self._held.setdefault(user, Shelf(self._dimension))
            self._held.move_to_end(user)
        with shelf.lock:
            if self._store.version(user) != shelf.version:
                shelf.apply(self._store.changes(user, shelf.version))
        self._shrink(user)
        return shelf

    def forget(self, user: str) -> None:
        """Let go of a user's shelf."""
        with self._guard:
            self._held.pop(user, None)

    def _shrink(self, asked: str) -> None:
        with self._guard:
            total = sum(map(len, self._held.values()))
            while total > self._most and len(self._held) > 1:
                user, shelf = next(iter(self._held.items()))
                if user == asked:
                    break
                del self._held[user]
                total -= len(shelf)


def _among(n: int, positions: Collection[int]) -> Mask:
    mask = np.zeros(n, dtype=np.bool_)
    mask[list(positions)] = True
    return mask


def _grown(array: npt.NDArray, room: int) -> npt.NDArray:  # type: ignore[type-arg]
    made = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    made[: len(array)] = array
    return made
