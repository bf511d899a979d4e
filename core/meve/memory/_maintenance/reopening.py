"""Reopening: a part of a record holds again when that record is gone; what a judge closed stays closed."""

from typing import TYPE_CHECKING

from meve.memory.records import is_part
from meve.memory.stores._closed_records import reopen

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


def reopen_orphans(plan: "MaintenancePlan") -> None:
    """Reopen parts of records that expire now, such as those of a summary, and of those that older versions erased."""
    every = {**plan.records, **plan.archived}
    for stored in every.values():
        record = stored.record
        if record.superseded_by is None or record.superseded_by in every or record.hold:
            continue
        if record.superseded_by in plan.unreadable:
            continue  # damaged, but not gone; if it expires now, the store leaves this one closed
        by = plan.erased.get(record.superseded_by)
        if record.flagged if by is None else not is_part(record, by):
            continue  # another statement: it stays closed
        plan.replace(stored, reopen(record))
        reason = f"{record.superseded_by}, which replaced it, is gone"
        plan.log(record, "restore", reason, rule="reopening", evidence={"by": record.superseded_by}, inverse="")
        plan.note(plan.report.restored, record.id)
