"""Reopening: a closed record holds again when the record that replaced it is gone."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan
    from meve.memory.records import MemoryRecord


def reopen(record: "MemoryRecord") -> "MemoryRecord":
    """Return a closed record as one that holds."""
    return replace(record, valid_to=None, superseded_by=None, flagged="", version=record.version + 1)


def reopen_orphans(plan: "MaintenancePlan") -> None:
    """Reopen records whose replacement expired, or was erased without them."""
    every = {**plan.records, **plan.archived}
    for stored in every.values():
        record = stored.record
        if record.superseded_by is None or record.superseded_by in every or record.hold:
            continue
        plan.replace(stored, reopen(record))
        reason = f"{record.superseded_by}, which replaced it, is gone"
        plan.log(record, "restore", reason, rule="reopening", evidence={"by": record.superseded_by}, inverse="")
        plan.note(plan.report.restored, record.id)
