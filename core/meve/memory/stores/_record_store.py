"""Reads, writes and audit entries that all back ends share, composed of the primitives of a `MemoryStore`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from meve.clock import Clock
from meve.errors import AuditError, DuplicateIdError, StorageError, wrap_errors
from meve.memory._audit.certificate import ErasureEntry
from meve.memory._audit.chain import (
    INITIAL_DIGEST,
    Action,
    AuditChain,
    AuditEvent,
    AuditHead,
    AuditRow,
    AuditVerification,
    EventDraft,
    to_audit_event,
)
from meve.memory._audit.log_names import LogNames, find_entries, hide_names
from meve.memory._audit.record_state import LoggedStates, hash_state
from meve.memory._steady_clock import SteadyClock
from meve.memory._timestamps import from_micros, to_micros
from meve.memory.records import SHARED, MemoryRecord, MemoryStats, SharedScore, StoredRecord, is_own_history, user_of
from meve.memory.stores._closed_records import detach_closed
from meve.memory.stores._reading import UnreadableRecord, all_records, find, readable_records
from meve.memory.stores._settings import LATEST_TIME, EmbedderClaims, claim_setting, see_time
from meve.memory.stores.protocol import EventQuery, Field, MemoryStore, RecordQuery, SealedHead, Snapshot, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a user's active records since a version."""

    version: int
    """The user's version now."""
    is_complete: bool
    """Whether `records` holds all active records, so that a reader must replace its own."""
    records: Sequence[StoredRecord]
    """New and changed records."""
    removed_rows: Sequence[int]


@dataclass(slots=True, kw_only=True)
class UserChange:
    """The changes of one user's records in a committed transaction. Listeners must drop their copies."""

    user: str
    erased: list[MemoryRecord] = field(default_factory=list)
    """Records that are gone."""
    overwritten: list[MemoryRecord] = field(default_factory=list)
    """Old versions of records whose text, tags or metadata changed."""
    erased_unreadable: list[str] = field(default_factory=list)
    """The ids of damaged records that are gone."""
    is_forgotten: bool = False
    """Whether everything of the user was erased."""


Listener = Callable[[UserChange], None]
Follow = Callable[[Iterable[AuditRow]], Iterable[AuditRow]]
_encode_detail = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class RecordTransaction:
    """Changes of records and their entries in the audit log, as one transaction of the back end.

    Args:
        transaction: the back end's.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.events: list[EventDraft] = []
        self.changes: dict[str, UserChange] = {}
        """By the user's key."""
        self._written: dict[tuple[str, str], MemoryRecord] = {}
        """By user and id, the records that were written; an entry of each will hold the hash of its state."""
        self._before: dict[tuple[str, str], MemoryRecord] = {}
        """By user and id, what was stored of the records that were replaced."""
        self._erased: dict[tuple[str, str], str] = {}
        """By user and id, the kinds of the records that were erased and not logged yet."""
        self.records = transaction.records
        self.version = transaction.version
        self.shared_scores = transaction.shared_scores
        self.touch = transaction.touch

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        return find(self._transaction, user, record_id)

    def entries(self, audit_chain: AuditChain, query: EventQuery) -> Iterable[AuditRow]:
        """Return what the log held before this transaction, whether it holds names or keyed hashes, oldest first."""
        return find_entries(self._transaction, audit_chain, query)

    def all_records(self, user: str) -> list[StoredRecord]:
        return all_records(self._transaction, user)

    def readable_records(self, user: str) -> tuple[list[StoredRecord], list[UnreadableRecord]]:
        return readable_records(self._transaction, RecordQuery(user=user, archived=None))

    def replaced_by(self, user: str, record_ids: Sequence[str]) -> list[StoredRecord]:
        """Return the closed records that these replaced, except damaged ones."""
        query = RecordQuery(user=user, archived=None, superseded_by=record_ids)
        return readable_records(self._transaction, query)[0]

    def erase_unreadable(self, user: str, record_id: str) -> None:
        """Remove a damaged record, and make listeners drop all data of the user."""
        if self._transaction.remove(user, record_id):
            change = self._change(user)
            change.is_forgotten = True
            change.erased_unreadable.append(record_id)
            self._erased[user, record_id] = "unreadable"

    def with_derived(
        self, user: str, record_ids: Sequence[str], *, copies: bool = False, superseded: bool = False
    ) -> list[StoredRecord]:
        """Return the records of these ids and all derived from them.

        What a derived summary replaced holds more than the origins, and isn't returned.

        Args:
            user: the user's key.
            record_ids: the ids.
            copies: also return the closed records that are part of one of these: its copies and earlier versions.
            superseded: also return all other closed records that these replaced.
        """
        query = RecordQuery(user=user, archived=None)
        found = {s.record.id: s for s in self.records(replace(query, ids=record_ids))}
        ids, replacing = list(record_ids), list(found)
        while ids:
            near = self.records(replace(query, derived_from=ids))
            follows = bool(replacing) and (copies or superseded)
            closed = self.records(replace(query, superseded_by=replacing)) if follows else []
            near += [
                s for s in closed if superseded or is_own_history(s.record, found[s.record.superseded_by or ""].record)
            ]
            new = {s.record.id: s for s in near if s.record.id not in found}
            found |= new
            ids, replacing = list(new), [s.record.id for s in new.values() if s.record.kind != "summary"]
        return list(found.values())

    def insert(self, user: str, *new: StoredRecord) -> None:
        """Write new records, of different ids. Raise DuplicateIdError if the user has a record of an id."""
        query = RecordQuery(user=user, archived=None, ids=[stored.record.id for stored in new])
        for (record_id,) in self._transaction.select(query, "id"):
            raise DuplicateIdError(f"id {record_id!r} is taken: choose another id, or update the record")
        self._change(user)
        for stored in new:
            self._put(user, stored)

    def replace(self, user: str, stored: StoredRecord) -> None:
        """Write a record in place of the one with its id. Raise StorageError if there is none."""
        before = self.find(user, stored.record.id)
        if before is None:
            raise StorageError(f"no record {stored.record.id!r} to replace: insert it")
        self._before.setdefault((user, stored.record.id), before.record)
        change = self._change(user)
        if _content(before.record) != _content(stored.record):
            change.overwritten.append(before.record)
        self._put(user, stored)

    def erase(self, user: str, record: MemoryRecord) -> None:
        """Remove a record, archived or not."""
        if self._transaction.remove(user, record.id):
            self._change(user).erased.append(record)
            self._written.pop((user, record.id), None)
            self._erased[user, record.id] = record.kind

    def put_vectors(self, user: str, *stored: StoredRecord) -> None:
        """Write new vectors of records. Their states stay, so the log needs no entry of each."""
        self._change(user)
        for each in stored:
            self._transaction.put(user, each)

    def forget_user(self, user: str) -> None:
        """Remove a user's shared scores, and make listeners drop all data of the user."""
        for record_id in self._transaction.shared_scores(user):
            self._transaction.put_shared_score(user, record_id, None)
        self._transaction.forget_user(user)
        self._change(user).is_forgotten = True

    def put_shared_score(self, user: str, record_id: str, score: SharedScore) -> None:
        self._change(user)
        self._transaction.put_shared_score(user, record_id, score)

    def log(self, *events: EventDraft) -> None:
        """Add entries to the audit log, in this order. An erasure's entry follows the erasure, and says the kind."""
        for event in events:
            kind = self._erased.pop((event.user, event.record), None)
            self.events.append(event if kind is None else _with_detail(event, erased=kind))

    def append_events(self, audit_chain: AuditChain) -> None:
        """Append the logged events to the audit chain."""
        if not self.events:
            return
        self._log_states(audit_chain)
        head = _get_head(self._transaction)
        seq, digest = head.seq, head.digest
        entries: list[AuditRow] = []
        for event in self.events:
            seq += 1
            event = hide_names(event, audit_chain)
            detail = _encode_detail(dict(event.detail))
            fields = (seq, to_micros(event.at), event.user, event.record, event.action, event.reason, detail)
            digest = audit_chain.digest(digest, fields)
            entries.append(AuditRow(*fields, digest))
        self._transaction.append(entries, SealedHead(seq=seq, digest=digest, seal=audit_chain.seal(seq, digest)))

    def _log_states(self, audit_chain: AuditChain) -> None:
        """Put the state of each written record into its last entry; without an entry, it gets one.

        A record that was changed behind the log keeps its logged state, so that `verify` still finds the change.
        """
        changed: dict[tuple[str, str], Action] = {key: "update" for key in self._written}
        changed |= {key: "delete" for key in self._erased}
        for user, record_id in sorted(changed.keys() - {(event.user, event.record) for event in self.events}):
            action, at = changed[user, record_id], self.events[-1].at
            self.log(EventDraft(at=at, user=user, record=record_id, action=action, reason="changed with other records"))
        last = {(event.user, event.record): n for n, event in enumerate(self.events)}
        for (user, record_id), record in self._written.items() if audit_chain.keyed else ():
            before = self._before.get((user, record_id))
            if before is not None and not self._is_as_logged(audit_chain, user, before):
                continue
            n = last[user, record_id]
            self.events[n] = _with_detail(self.events[n], state=hash_state(audit_chain, user, record))

    def _is_as_logged(self, audit_chain: AuditChain, user: str, record: MemoryRecord) -> bool:
        """Return whether the log shows a record's addition, and no other state of it than this."""
        rows = list(self.entries(audit_chain, EventQuery(user=user, record=record.id)))
        states = [row for row in rows if '"state":' in row.detail]
        if not states:
            return any(row.action == "add" for row in rows)
        return bool(json.loads(states[-1].detail)["state"] == hash_state(audit_chain, user, record))

    def _put(self, user: str, stored: StoredRecord) -> None:
        self._transaction.put(user, stored)
        self._written[user, stored.record.id] = stored.record
        self._erased.pop((user, stored.record.id), None)

    def _change(self, user: str) -> UserChange:
        return self.changes.setdefault(user, UserChange(user=user))


class RecordStore:
    """The records, the audit log and the listeners of a memory, over any back end.

    Args:
        backend: where all of it is kept.
        audit_chain: signs the audit log.
    """

    def __init__(self, backend: MemoryStore, audit_chain: AuditChain | None = None) -> None:
        self.backend = backend
        self.chain = audit_chain or AuditChain()
        self.embedders = EmbedderClaims(backend)
        self.close = backend.close
        self._listeners: list[Listener] = []
        self._clock: SteadyClock | None = None

    @classmethod
    def open(cls, backend: MemoryStore, audit_chain: AuditChain | None = None) -> Self:
        """Begin the audit log of a new store, or check that this key signs it.

        Raises:
            AuditError: another key signs the log.
        """
        store = cls(backend, audit_chain)
        mine = store.chain.fingerprint
        seal = store.chain.seal(0, INITIAL_DIGEST)
        head = SealedHead(seq=0, digest=INITIAL_DIGEST, seal=seal)
        theirs = claim_setting(backend, "audit_key", mine, head)
        if theirs != mine:
            had, given = ("a key" if each else "no key" for each in (theirs, mine))
            difference = "another key" if had == given else f"{had}, and you gave {given}"
            raise AuditError(
                f"the audit log of {backend.name} is signed with {difference}: open it with the same audit_key"
            )
        return store

    def keep_time(self, clock: Clock, *, reset: bool = False) -> SteadyClock:
        """Return a clock that never shows an earlier time than the store has seen; each write notes the time.

        Args:
            clock: the clock to read.
            reset: whether to forget the time that the store has seen.
        """
        steady = SteadyClock(clock)
        if reset:
            with self.backend.writing() as transaction:
                transaction.put_setting(LATEST_TIME, str(to_micros(steady.now())))
        with self.backend.reading() as snapshot:
            see_time(snapshot, steady)
        self._clock = steady
        return steady

    def subscribe(self, listener: Listener) -> None:
        """Call a function with each user's changes after each commit, so that caches drop erased records."""
        self._listeners.append(listener)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[RecordTransaction]:
        """Write as `MemoryStore.writing` does, and call the listeners after the commit."""
        with self.backend.writing(durable=durable) as transaction:
            records = RecordTransaction(transaction)
            yield records
            detach_closed(records)
            records.append_events(self.chain)
            if self._clock is not None:
                transaction.put_setting(LATEST_TIME, str(to_micros(see_time(transaction, self._clock))))
        for change in records.changes.values():
            for listener in self._listeners:
                listener(change)

    def find(self, user: str, record_id: str) -> StoredRecord | None:
        with self.backend.reading() as snapshot:
            return find(snapshot, user, record_id)

    def records(self, query: RecordQuery) -> list[StoredRecord]:
        with self.backend.reading() as snapshot:
            return snapshot.records(query)

    def count(self, query: RecordQuery) -> int:
        with self.backend.reading() as snapshot:
            return snapshot.count(query)

    def all_records(self, user: str) -> list[StoredRecord]:
        with self.backend.reading() as snapshot:
            return all_records(snapshot, user)

    def readable_records(self, user: str) -> tuple[list[StoredRecord], list[UnreadableRecord]]:
        with self.backend.reading() as snapshot:
            return readable_records(snapshot, RecordQuery(user=user, archived=None))

    def version(self, user: str) -> int:
        with self.backend.reading() as snapshot:
            return snapshot.version(user)

    def changes(self, user: str, since: int) -> Changes:
        """Return the changes of a user's active records after a version, or all records if the changes are unknown."""
        with self.backend.reading() as snapshot:
            version = snapshot.version(user)
            removed = snapshot.removed_rows(user, since) if 0 < since <= version else None
            is_complete = removed is None
            records = snapshot.records(RecordQuery(user=user, changed_since=0 if is_complete else since))
        return Changes(version=version, is_complete=is_complete, records=records, removed_rows=removed or ())

    def touched(self, user: str, record_ids: Sequence[str]) -> dict[str, datetime]:
        """Return by id when active records were last recalled: `changes` doesn't report recalls."""
        times = self.select(RecordQuery(user=user, ids=record_ids), "id", "touched_at")
        return {record_id: touched_at for record_id, touched_at in times if touched_at is not None}

    def select(self, query: RecordQuery, *fields: Field) -> list[tuple[Any, ...]]:
        with self.backend.reading() as snapshot:
            return snapshot.select(query, *fields)

    def users(self) -> list[str]:
        with self.backend.reading() as snapshot:
            return snapshot.users()

    def shared_scores(self, user: str) -> Mapping[str, SharedScore]:
        with self.backend.reading() as snapshot:
            return snapshot.shared_scores(user)

    def events(self, query: EventQuery) -> Iterator[AuditEvent]:
        """Return the matching entries of the audit log, oldest first. Raise AuditError for a damaged entry.

        A user's entries are found, and name the user, whether they hold the id or a pseudonym.
        """
        with self.backend.reading() as snapshot:
            names = LogNames(snapshot, self.chain, query)
            for entry in find_entries(snapshot, self.chain, query):
                with wrap_errors(AuditError, f"reading entry {entry.seq} of the audit log (verify() checks the log)"):
                    event = to_audit_event(entry, from_micros(entry.at))
                    "".join(entry[2:-1]).encode()  # no surrogates
                event = names.shown(event, entry)
                yield event if query.user is None else replace(event, user_id=user_of(query.user))

    def head(self) -> AuditHead:
        """Return position and digest of the newest entry of the audit log."""
        with self.backend.reading() as snapshot:
            head = _get_head(snapshot)
        return AuditHead(seq=head.seq, digest=head.digest.hex())

    def verify(self, kept: AuditHead | None = None) -> AuditVerification:
        """Check the audit log against its chain, its seal and a kept head, and the records against the log."""
        logged = LoggedStates(self.chain)
        with self.backend.reading() as snapshot:
            result = self._verify_log(snapshot, kept, logged.follow)
            if not result.ok:
                return result
            if not self.chain.keyed:
                return replace(result, not_covered=snapshot.count(RecordQuery(user=None, archived=None)))
            return logged.compare(snapshot, result)

    def verify_erasures(
        self, follow: Follow, users: Iterable[str], kept: AuditHead | None = None
    ) -> tuple[AuditVerification, set[str]]:
        """Check the audit log, while `follow` reads along; it must yield each entry.

        Args:
            follow: reads the entries.
            users: the key of a user, or its pseudonym, or both.
            kept: a head that was kept elsewhere.

        Returns:
            The result, and the ids of records of the user that are stored although the log shows no addition of them
            since they were erased last; empty for one that can't be read.
        """
        logged = LoggedStates(self.chain)
        with self.backend.reading() as snapshot:
            result = self._verify_log(snapshot, kept, lambda rows: logged.follow(follow(rows)))
            return result, logged.find_planted(snapshot, users) if result.ok else set()

    def with_ids(self, entries: Iterable[ErasureEntry], user: str, ids: Iterable[str]) -> list[ErasureEntry]:
        """Return erasures with the ids of their records, as far as the store can tell them, or they are given."""
        with self.backend.reading() as snapshot:
            names = LogNames(snapshot, self.chain, EventQuery(user=user), ids)
            return [replace(entry, record_id=names.of(entry.record_id)) for entry in entries]

    def _verify_log(self, snapshot: Snapshot, kept: AuditHead | None, follow: Follow) -> AuditVerification:
        head = snapshot.head()
        if head is None:
            problem = "the log's head is missing"
            return AuditVerification(ok=False, events=0, keyed=self.chain.keyed, broken_at=1, problem=problem)
        return self.chain.verify(follow(snapshot.entries(EventQuery())), head.seq, head.digest, head.seal, kept)

    def find_damage(self) -> list[str]:
        """Return what is wrong with the file that holds the records; empty for nothing, or for a store of your own."""
        find: Callable[[], list[str]] | None = getattr(self.backend, "find_damage", None)
        return [] if find is None else find()

    def counts(self) -> MemoryStats:
        with self.backend.reading() as snapshot:
            head = snapshot.head()
            return MemoryStats(
                records=snapshot.count(RecordQuery(user=None)),
                archived=snapshot.count(RecordQuery(user=None, archived=True)),
                users=sum(user != SHARED for user in snapshot.users()),
                events=head.seq if head else 0,
                bytes=self.backend.size(),
            )


def _get_head(snapshot: Snapshot) -> SealedHead:
    head = snapshot.head()
    if head is None:
        raise AuditError("the audit log has no head: restore the store from a copy")
    return head


def _with_detail(event: EventDraft, **detail: str) -> EventDraft:
    return replace(event, detail={**event.detail, **detail})


def _content(record: MemoryRecord) -> tuple[object, ...]:
    return (record.text, record.tags, record.metadata)
