"""Reads of a user's records, also past damaged ones."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from meve.errors import StoreCorruptError
from meve.memory.records import StoredRecord
from meve.memory.stores.protocol import RecordQuery, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord:
    """What can be read of a damaged record."""

    id: str
    expires_at: datetime | None
    hold: str


def find(snapshot: Snapshot, user: str, record_id: str) -> StoredRecord | None:
    """Return one record, archived or not."""
    records = snapshot.records(RecordQuery(user=user, archived=None, ids=[record_id]))
    return records[0] if records else None


def all_records(snapshot: Snapshot, user: str) -> list[StoredRecord]:
    """Return all records of a user by id, the archived ones last."""
    records = snapshot.records(RecordQuery(user=user, archived=None))
    return sorted(records, key=_order)


def readable_records(snapshot: Snapshot, query: RecordQuery) -> tuple[list[StoredRecord], list[UnreadableRecord]]:
    """Return the matching records that can be read, the archived ones last, and what can be read of the others."""
    with suppress(StoreCorruptError):
        records = snapshot.records(query)
        if len(records) == snapshot.count(query):  # one whose key is missing is left out
            return sorted(records, key=_order), []
    records, unreadable = [], []
    for record_id, expires_at, hold in snapshot.select(query, "id", "expires_at", "hold"):
        found: list[StoredRecord] = []
        with suppress(StoreCorruptError):
            found = snapshot.records(replace(query, ids=[record_id]))
        records += found
        if not found:
            unreadable.append(UnreadableRecord(id=record_id, expires_at=expires_at, hold=hold))
    return sorted(records, key=_order), unreadable


def _order(stored: StoredRecord) -> tuple[bool, str]:
    return stored.record.archived, stored.record.id
