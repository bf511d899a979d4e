"""Reopening: a part of a record holds again when that record is gone; what a judge closed stays closed."""

from dataclasses import replace
from typing import TYPE_CHECKING

from meve.memory.records import MemoryRecord, is_part

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


def reopen(record: MemoryRecord) -> MemoryRecord:
    """Return a closed record as one that holds."""
    return replace(record, valid_to=None, superseded_by=None, flagged="", version=record.version + 1)


def reopen_orphans(plan: "MaintenancePlan") -> None:
    """Reopen parts of records that expired or were erased without them, such as those of a summary."""
    every = {**plan.records, **plan.archived}
    for stored in every.values():
        record = stored.record
        if record.superseded_by is None or record.superseded_by in every or record.hold:
            continue
        by = plan.erased.get(record.superseded_by)
        if by is not None and not is_part(record, by):
            continue  # the store leaves it closed, without a replacement
        plan.replace(stored, reopen(record))
        reason = f"{record.superseded_by}, which replaced it, is gone"
        plan.log(record, "restore", reason, rule="reopening", evidence={"by": record.superseded_by}, inverse="")
        plan.note(plan.report.restored, record.id)
