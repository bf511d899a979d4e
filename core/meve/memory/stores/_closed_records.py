"""Closed records when what replaced them is erased: copies and parts, and other statements, which stay closed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from meve.memory._audit.chain import EventDraft
from meve.memory.records import MemoryRecord, is_own_history, is_part, validity
from meve.memory.stores.protocol import RecordQuery

if TYPE_CHECKING:
    from meve.memory.stores._record_store import RecordTransaction

_REPLACING = ("fact", "summary")
"""The kinds of records that replace others."""


def find_copies(transaction: "RecordTransaction", user: str, record: MemoryRecord) -> list[MemoryRecord]:
    """Return the copies and earlier versions of a record that aren't on hold."""
    if record.kind != "fact":
        return []
    closed = transaction.records(RecordQuery(user=user, archived=None, superseded_by=[record.id]))
    return [s.record for s in closed if is_part(s.record, record) and not s.record.hold]


def find_replaced(transaction: "RecordTransaction", user: str, records: Iterable[MemoryRecord]) -> set[str]:
    """Return the ids of the closed records that these replaced, in one or several steps, but not their own history."""
    found: set[str] = set()
    replacing = {r.id: r for r in records if r.kind in _REPLACING}
    while replacing:
        closed = transaction.records(RecordQuery(user=user, archived=None, superseded_by=list(replacing)))
        replacing = {
            s.record.id: s.record
            for s in closed
            if s.record.id not in found
            and (found or not is_own_history(s.record, replacing[s.record.superseded_by or ""]))
        }
        found |= replacing.keys()
    return found


def detach_closed(transaction: "RecordTransaction") -> None:
    """Keep closed records closed whose replacement was erased in this transaction, unless they are parts of it.

    Maintenance reopens those that are left of the parts, such as those of a summary.
    """
    for user, change in transaction.changes.items():
        gone = {r.id: r for r in change.erased if r.kind in _REPLACING}
        if not gone or not transaction.events:
            continue
        for stored in transaction.records(RecordQuery(user=user, archived=None, superseded_by=list(gone))):
            before = stored.record
            by = gone[before.superseded_by or ""]
            if is_part(before, by):
                continue
            record = replace(before, superseded_by=None, valid_to=validity(before)[1], version=before.version + 1)
            transaction.replace(user, replace(stored, record=record))
            reason = f"{by.id}, which replaced it, is gone"
            at = transaction.events[-1].at
            transaction.log(EventDraft(at=at, user=user, record=record.id, action="update", reason=reason))
