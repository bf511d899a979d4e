"""A memory store of plain dicts, for tests and as an example."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from meve.errors import StorageError
from meve.memory._audit.chain import AuditRow
from meve.memory.records import SHARED, SharedScore, StoredRecord
from meve.memory.stores.protocol import EventQuery, Field, RecordQuery, SealedHead


@dataclass(slots=True)
class _User:
    version: int = 0
    records: dict[str, StoredRecord] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    """The version of each record's last change, by id."""
    removed: dict[int, int] = field(default_factory=dict)
    """The version in which each row was removed or archived."""
    shared_scores: dict[str, SharedScore] = field(default_factory=dict)


@dataclass(slots=True)
class _StoreState:
    users: dict[str, _User] = field(default_factory=dict)
    rows: int = 0
    entries: list[AuditRow] = field(default_factory=list)
    head: SealedHead | None = None
    settings: dict[str, str] = field(default_factory=dict)


class _DictTransaction:
    """Reads and writes of one state. See `meve.memory.stores.protocol`."""

    def __init__(self, state: _StoreState) -> None:
        self._state = state
        self._versions: dict[str, int] = {}

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        matches = sorted(self._matches(query), key=lambda stored: stored.row, reverse=query.newest_first)
        end = None if query.limit is None else query.offset + query.limit
        return list(islice(matches, query.offset, end))

    def count(self, query: RecordQuery) -> int:
        return sum(1 for _ in self._matches(query))

    def version(self, user: str) -> int:
        return self._user(user).version

    def removed_rows(self, user: str, since: int) -> list[int] | None:
        return [row for row, version in self._user(user).removed.items() if version > since]

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for stored in self.records(query):
            row = tuple(stored.row if name == "row" else getattr(stored.record, name) for name in fields)
            if row not in rows:
                rows.append(row)
        return deepcopy(rows)

    def users(self) -> list[str]:
        return sorted(key for key, user in self._state.users.items() if user.records)

    def shared_scores(self, user: str) -> dict[str, SharedScore]:
        return dict(self._user(user).shared_scores)

    def names(self, user: str | None) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        return iter(())

    def entries(self, query: EventQuery) -> Iterator[AuditRow]:
        for entry in self._state.entries:
            if (
                query.user in (None, entry.user)
                and query.record in (None, entry.record)
                and (not query.actions or entry.action in query.actions)
                and (query.since is None or entry.at >= query.since)
                and (query.until is None or entry.at < query.until)
            ):
                yield entry

    def head(self) -> SealedHead | None:
        return self._state.head

    def setting(self, name: str) -> str | None:
        return self._state.settings.get(name)

    def put(self, user: str, stored: StoredRecord) -> None:
        owner, record = self._changed(user), stored.record
        before = owner.records.get(record.id)
        if before is None or (before.record.archived and record.kind != "message"):
            self._state.rows += 1
            row = self._state.rows
        else:
            row = before.row
        if record.archived:
            owner.removed[row] = owner.version
        owner.records[record.id] = replace(stored, row=row)
        owner.changed[record.id] = owner.version

    def remove(self, user: str, record_id: str) -> bool:
        owner = self._changed(user)
        before = owner.records.pop(record_id, None)
        for each in self._state.users.values() if user == SHARED else ():
            each.shared_scores.pop(record_id, None)
        if before is not None:
            owner.removed[before.row] = owner.version
        return before is not None

    def touch(self, user: str, record_ids: Sequence[str], at: datetime) -> None:
        for stored in self.records(RecordQuery(user=user, ids=record_ids)):
            if (stored.record.touched_at or at) > at:
                continue
            touched = replace(stored, record=replace(stored.record, touched_at=at))
            self._user(user).records[stored.record.id] = touched

    def put_shared_score(self, user: str, record_id: str, score: SharedScore | None) -> None:
        shared_scores = self._changed(user).shared_scores
        shared_scores.pop(record_id, None)
        if score is not None:
            shared_scores[record_id] = score

    def has_damaged_key(self, user: str) -> bool:  # noqa: ARG002 - it has no keys
        return False

    def forget_user(self, user: str) -> None:
        """Do nothing: nothing outlives the process."""

    def append(self, entries: Iterable[AuditRow], head: SealedHead) -> None:
        self._state.entries += entries
        self._state.head = head

    def put_setting(self, name: str, value: str) -> None:
        self._state.settings[name] = value

    def _user(self, user: str) -> _User:
        return self._state.users.get(user, _User())

    def _changed(self, user: str) -> _User:
        """Return a user to change; all changes of a transaction make one version."""
        owner = self._state.users.setdefault(user, _User())
        owner.version = self._versions.setdefault(user, owner.version + 1)
        return owner

    def _matches(self, q: RecordQuery) -> Iterator[StoredRecord]:
        owners = self._state.users.values() if q.user is None else [self._user(q.user)]
        for owner, stored in ((o, stored) for o in owners for stored in o.records.values()):
            record = stored.record
            if (
                q.archived in (None, record.archived)
                and (q.ids is None or record.id in q.ids)
                and (q.derived_from is None or not set(q.derived_from).isdisjoint(record.derived_from))
                and (q.superseded_by is None or record.superseded_by in q.superseded_by)
                and q.kind in (None, record.kind)
                and q.session_id in (None, record.session_id)
                and (q.alive_at is None or not record.expired(q.alive_at))
                and (q.changed_since is None or owner.changed[record.id] > q.changed_since)
                and (q.after is None or stored.row > q.after)
                and (q.before is None or stored.row < q.before)
            ):
                yield stored


class DictMemoryStore:
    """A memory store without a file, lost when the process ends. See `meve.memory.stores.protocol.MemoryStore`.

    Every write copies the whole state, and every read scans all records of the user, so keep the memory small.
    """

    name = "the dict memory store"
    names_key = None

    def __init__(self) -> None:
        self._state = _StoreState()
        self._writers = threading.Lock()
        self.is_closed = False

    @contextmanager
    def reading(self) -> Iterator[_DictTransaction]:
        """Read one consistent state."""
        self._check_open()
        yield _DictTransaction(self._state)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[_DictTransaction]:  # noqa: ARG002
        """Replace the state when the block ends; keep the old state if the block raises."""
        with self._writers:
            self._check_open()
            state = deepcopy(self._state)
            yield _DictTransaction(state)
            self._state = state

    def size(self) -> int:
        """Return 0: there is no file."""
        return 0

    def close(self) -> None:
        """Refuse all further reads and writes."""
        self.is_closed = True

    def _check_open(self) -> None:
        if self.is_closed:
            raise StorageError(f"{self.name} is closed: open another")
