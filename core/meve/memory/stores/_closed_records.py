"""Closed records when what replaced them is erased: copies and parts, and other statements, which stay closed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from meve.memory._audit.chain import Action, EventDraft
from meve.memory.records import MemoryRecord, is_own_history, is_part, validity, without_copies

if TYPE_CHECKING:
    from meve.memory.stores._record_transaction import RecordTransaction

_REPLACING = ("fact", "summary")
"""The kinds of records that replace others."""


def reopen(record: MemoryRecord) -> MemoryRecord:
    """Return a closed record as one that holds."""
    return replace(record, valid_to=None, superseded_by=None, flagged="", version=record.version + 1)


def find_copies(transaction: "RecordTransaction", user: str, record: MemoryRecord) -> list[MemoryRecord]:
    """Return the copies and earlier versions of a record that aren't on hold."""
    if record.kind != "fact":
        return []
    closed = transaction.replaced_by(user, [record.id])
    return [s.record for s in closed if is_part(s.record, record) and not s.record.hold]


def find_replaced(transaction: "RecordTransaction", user: str, records: Iterable[MemoryRecord]) -> set[str]:
    """Return the ids of the closed records that these replaced, in one or several steps, but not their own history."""
    found: set[str] = set()
    replacing = {r.id: r for r in records if r.kind in _REPLACING}
    while replacing:
        closed = transaction.replaced_by(user, list(replacing))
        replacing = {
            s.record.id: s.record
            for s in closed
            if s.record.id not in found
            and (found or not is_own_history(s.record, replacing[s.record.superseded_by or ""]))
        }
        found |= replacing.keys()
    return found


def detach_closed(transaction: "RecordTransaction") -> None:
    """Settle the closed records whose replacement was erased in this transaction and that stay themselves.

    Parts of it, such as copies and those of a summary, hold again at once, unless they are on hold. Others stay closed,
    as does what a damaged record replaced, since nobody knows its parts.
    """
    for user, change in transaction.changes.items():
        gone = {r.id: r for r in change.erased if r.kind in _REPLACING}
        ids = [*gone, *change.erased_unreadable]
        for stored in transaction.replaced_by(user, ids) if ids and transaction.events else ():
            before = stored.record
            by = before.superseded_by or ""
            was_part = by in gone and is_part(before, gone[by])
            if was_part and before.hold:
                continue
            still_closed = replace(before, superseded_by=None, valid_to=validity(before)[1], version=before.version + 1)
            record = reopen(before) if was_part else still_closed
            transaction.replace(user, replace(stored, record=record))
            reason, at = f"{by}, which replaced it, is gone", transaction.events[-1].at
            action: Action = "restore" if was_part else "update"
            draft = EventDraft(at=at, user=user, record=record.id, action=action, reason=reason)
            transaction.log(draft._replace(detail={"evidence": {"by": by}}))
        if transaction.events:
            _drop_copies(transaction, user, change.erased)


def _drop_copies(transaction: "RecordTransaction", user: str, erased: Iterable[MemoryRecord]) -> None:
    """Let records that stay name none of their erased copies any more: they say the same by themselves."""
    gone = {r.id: r for r in erased}
    for by in sorted({r.superseded_by for r in gone.values() if r.superseded_by} - gone.keys()):
        stored = transaction.find(user, by)
        record = None if stored is None else stored.record
        if stored is None or record is None or record.hold:
            continue
        left = without_copies(record, gone.values())
        if left != record:
            changed = replace(left, version=record.version + 1)
            transaction.replace(user, replace(stored, record=changed))
            reason, at = "a copy that was merged into it is gone", transaction.events[-1].at
            transaction.log(EventDraft(at=at, user=user, record=by, action="update", reason=reason))
