"""One user's memories as they are searched: vectors, words, and what a policy asks of each, in arrays."""

import threading
from bisect import bisect
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.components.lexical.analyzers import stemmed_words
from meve.components.lexical.bm25 import Bm25Index
from meve.memory._contradiction.statements import Statement, parse_statement
from meve.memory._recall.namespace_index import NamespaceIndex
from meve.memory.items.item import Namespace, updated
from meve.memory.policy import PolicyClass, Relevance, Source
from meve.memory.records import MemoryRecord, StoredRecord
from meve.memory.stores.protocol import Changes, MemoryStore
from meve.memory.stores.sqlite._rows import micros
from meve.types import FloatArray

NEVER = np.iinfo(np.int64).max
_CLASSES = {name: n for n, name in enumerate(get_args(PolicyClass))}
_SOURCES = {name: n for n, name in enumerate(get_args(Source))}

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


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
            and record.text != ""
            and record.policy_class in self.classes
            and (self.sources is None or record.source in self.sources)
            and (self.tags is None or not set(self.tags).isdisjoint(record.tags))
            and (self.session_id is None or record.session_id == self.session_id)
            and (self.since is None or record.created_at >= self.since)
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found, and how like it is to the question; all in [0, 1]."""

    stored: StoredRecord
    relevance: float
    cosine: float
    words: float
    """The share of the question's words that it holds, rare ones weighing more."""


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
        self._statements: dict[str, Statement] = {}
        self._at: dict[int, int] = {}
        """Row to position."""
        self._stored: list[StoredRecord | None] = []
        self._units = np.zeros((0, self._dimension), dtype=np.float32)
        self._facts = np.zeros((0, 6), dtype=np.int64)
        """Expiry, class, source, creation, when an item was put last, row."""
        self._live = np.zeros(0, dtype=np.bool_)
        self._tags: dict[str, set[int]] = {}
        self._rows: list[int] = []
        """The row at each position."""
        self._sessions: dict[str, list[int]] = {}
        self._before = np.zeros(0, dtype=np.int64)
        self._after = np.zeros(0, dtype=np.int64)
        """The positions of those beside a record in its session; -1 for none."""
        self._places = NamespaceIndex()
        self.words = Bm25Index(analyzer=stemmed_words)

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
            mask &= among(n, set().union(*(self._tags.get(tag, set()) for tag in scope.tags)))
        if scope.session_id is not None:
            mask &= among(n, self._sessions.get(scope.session_id, []))
        return mask

    def items(self, prefix: Namespace, now: datetime) -> Positions:
        """Where the items lie whose namespace begins so and that aren't expired, in no order."""
        positions = self._places.find_under(prefix)
        kept: Positions = positions[self._facts[positions, 0] > micros(now)]
        return kept

    def newest(self, positions: Positions) -> Positions:
        """Positions of items, those put last first, of one moment those that were there first."""
        _, _, _, _, put, row = self._facts[positions].T
        return positions[np.lexsort((row, -put))]

    def namespaces(self, now: datetime) -> list[Namespace]:
        """All that hold an item that isn't expired, in no order."""
        return [name for name, held in self._places.namespaces() if (self._facts[held, 0] > micros(now)).any()]

    def at(self, position: int) -> StoredRecord | None:
        """The record at a position; None where there is none any more."""
        return self._stored[position]

    def records(self, scope: Scope) -> list[MemoryRecord]:
        """All that aren't expired, whatever else the scope asks for."""
        return [s.record for s in self._stored if s is not None and not s.record.expired(scope.now)]

    def alike(self, text: str, vector: FloatArray, k: int, mask: Mask, rule: Relevance) -> list[Hit]:
        """At most k records that a mask admits, likest first, equal ones by id.

        Args:
            text: the question.
            vector: its embedding, shape (d,).
            k: how many at most.
            mask: which positions may be found, shape (n,); neighbours that it leaves out lend nothing.
            rule: the weights of the relevance score.
        """
        n = len(mask)
        # row by row, in this thread: BLAS rounds equal rows differently, and its threads wait for one another
        near: Floats = np.maximum(np.einsum("ij,j->i", self._units[:n], normalize(vector)), 0.0) * mask.astype(np.float64)
        shared = np.zeros(n)
        spoken_of, shares = self.words.score_shares(text)
        shared[spoken_of] = shares
        shared *= mask
        positions = np.flatnonzero(mask)
        made = self._together(positions, near, shared, rule).astype(np.float32)
        if len(made) > k:
            stay = made >= np.partition(made, len(made) - k)[len(made) - k]
            positions, made = positions[stay], made[stay]
        hits = [(score, self._stored[p], p) for score, p in zip(made.tolist(), positions.tolist(), strict=True)]
        found = [Hit(stored, score, float(near[p]), float(shared[p])) for score, stored, p in hits if stored]
        return sorted(found, key=lambda hit: (-hit.relevance, hit.stored.record.id))[:k]

    def _together(self, positions: Positions, near: Floats, shared: Floats, rule: Relevance) -> Floats:
        """The likeness at some positions, each with what it borrows from those beside it, at most 1."""
        own = np.append((near + rule.words * shared) / 2, 0.0)  # what has no neighbour points there
        before, after = own[self._before[positions]], own[self._after[positions]]
        return np.asarray(np.minimum(own[positions] + rule.before * before + rule.after * after, 1.0))

    def statement(self, text: str) -> Statement:
        """A text of a record that it holds, taken apart; remembered until a record goes."""
        if text not in self._statements:
            self._statements[text] = parse_statement(text)
        return self._statements[text]

    def _take(self, changed: Sequence[tuple[int, StoredRecord]]) -> None:
        found = [each for each in changed if each[1].record.source != "message"]  # no search recalls those
        if not found:
            return
        first = len(self._stored)
        self._reserve(first + len(found))
        self._units[first : first + len(found)] = normalize(np.array([stored.vector for _, stored in found]))
        for n, (row, stored) in enumerate(found, start=first):
            record = stored.record
            self._at[row] = n
            self._stored.append(stored)
            self._rows.append(row)
            expires = NEVER if record.expires_at is None else micros(record.expires_at)
            self._facts[n] = (
                expires,
                _CLASSES[record.policy_class],
                _SOURCES[record.source],
                micros(record.created_at),
                updated(record) if record.source == "item" else 0,
                row,
            )
            self._live[n] = record.superseded_by is None and record.text != ""
            self._places.add(n, record)
            for tag in record.tags:
                self._tags.setdefault(tag, set()).add(n)
            self._before[n] = self._after[n] = -1
            if record.session_id is not None:
                self._join(record.session_id, n)
        positions = np.arange(first, first + len(found))
        self.words.add(positions, [spoken(stored.record) for _, stored in found])

    def _join(self, session: str, n: int) -> None:
        """Link a record to those beside it in its session: the order is that of rows, in which they were added."""
        mine = self._sessions.setdefault(session, [])
        place = bisect(mine, self._rows[n], key=self._rows.__getitem__)
        mine.insert(place, n)
        self._link(mine[place - 1] if place else -1, n)
        self._link(n, mine[place + 1] if place + 1 < len(mine) else -1)

    def _leave(self, session: str, n: int) -> None:
        self._sessions[session].remove(n)
        self._link(int(self._before[n]), int(self._after[n]))

    def _link(self, before: int, after: int) -> None:
        if before >= 0:
            self._after[before] = after
        if after >= 0:
            self._before[after] = before

    def _drop(self, rows: Sequence[int]) -> None:
        positions = [self._at.pop(row) for row in rows]
        if positions:
            self._statements = {}
        for n in positions:
            stored = self._stored[n]
            self._stored[n] = None
            self._live[n] = False
            self._units[n] = 0
            if stored is not None:
                self._places.remove(n, stored.record)
                for tag in stored.record.tags:
                    self._tags[tag].discard(n)
                if stored.record.session_id is not None:
                    self._leave(stored.record.session_id, n)
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
            self._units = _grown(self._units, room)
            self._facts = _grown(self._facts, room)
            self._live = _grown(self._live, room)
            self._before = _grown(self._before, room)
            self._after = _grown(self._after, room)


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

    def freshen(self, user: str) -> None:
        """Let go of what a user has no more; nothing is read for one whose shelf isn't in memory."""
        with self._guard:
            held = user in self._held
        if held:
            self.of(user)

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


def spoken(record: MemoryRecord) -> str:
    """The words that a record is found by: its text, its tags, and the day that it is of."""
    return f"{record.text} {' '.join(record.tags)} {record.created_at:%d %B %Y %A}"


def among(n: int, positions: Collection[int] | Positions) -> Mask:
    """Of n positions these, shape (n,)."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[positions if isinstance(positions, np.ndarray) else list(positions)] = True
    return mask


def _grown(array: npt.NDArray, room: int) -> npt.NDArray:  # type: ignore[type-arg]
    made = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    made[: len(array)] = array
    return made
