"""One transaction of a record store: changes of records, and their entries in the audit log."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from meve.errors import AuditError, DuplicateIdError, StorageError
from meve.memory._audit.chain import (
    Action,
    AuditChain,
    AuditRow,
    EventDraft,
    encode_detail,
)
from meve.memory._audit.log_names import find_entries, hide_names
from meve.memory._audit.record_state import hash_state, is_same_state
from meve.memory._timestamps import to_micros
from meve.memory.records import MemoryRecord, SharedScore, StoredRecord, is_own_history
from meve.memory.stores._reading import UnreadableRecord, all_records, find, readable_records
from meve.memory.stores.protocol import EventQuery, RecordQuery, SealedHead, Snapshot, Transaction


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
        self.has_damaged_key = transaction.has_damaged_key
        self.touch = transaction.touch
        self.select = transaction.select
        self.setting = transaction.setting
        self.put_setting = transaction.put_setting

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
        head = get_head(self._transaction)
        seq, digest = head.seq, head.digest
        entries: list[AuditRow] = []
        for event in hide_names(self.events, audit_chain):
            seq += 1
            detail = encode_detail(event.detail)
            fields = (seq, to_micros(event.at), event.user, event.record, event.action, event.reason, detail)
            digest = audit_chain.digest(digest, fields)
            entries.append(AuditRow(*fields, digest))
        self._transaction.append(entries, SealedHead(seq=seq, digest=digest, seal=audit_chain.seal(seq, digest)))

    def _log_states(self, audit_chain: AuditChain) -> None:
        """Put the state of each written record into its last entry; without an entry, it gets one.

        A record that was changed behind the log keeps its logged state, so that `verify` still finds the change.
        """
        if not (self._written or self._erased):
            return
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
        return is_same_state(json.loads(states[-1].detail)["state"], hash_state(audit_chain, user, record))

    def _put(self, user: str, stored: StoredRecord) -> None:
        self._transaction.put(user, stored)
        self._written[user, stored.record.id] = stored.record
        self._erased.pop((user, stored.record.id), None)

    def _change(self, user: str) -> UserChange:
        return self.changes.setdefault(user, UserChange(user=user))


def get_head(snapshot: Snapshot) -> SealedHead:
    """Return the end of the audit log. Raise AuditError if it is missing."""
    head = snapshot.head()
    if head is None:
        raise AuditError("the audit log has no head: restore the store from a copy")
    return head


def _with_detail(event: EventDraft, **detail: str) -> EventDraft:
    return event._replace(detail={**event.detail, **detail})


def _content(record: MemoryRecord) -> tuple[object, ...]:
    return (record.text, record.tags, record.metadata)
