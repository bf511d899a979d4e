"""Pruning: remove records of low score, and the worst ones beyond the maximum number."""

from datetime import datetime
from typing import TYPE_CHECKING

from meve.memory.records import MemoryRecord

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


def prune_low_scores(plan: "MaintenancePlan") -> None:
    """Remove records of some age whose score is below the policy's threshold."""
    rules = plan.policy.pruning
    for record in [stored.record for stored in plan.records.values()]:
        is_old = plan.now - record.created_at >= rules.min_age
        if plan.is_removable(record) and is_old and plan.score(record) < rules.below:
            _prune(plan, record, f"its score fell below {rules.below:g}")


def enforce_cap(plan: "MaintenancePlan") -> None:
    """Remove the worst records beyond the policy's maximum for one user."""
    cap = plan.policy.limits.per_user
    excess = len(plan.records) - cap
    if excess > 0:

        def worth(record: MemoryRecord) -> tuple[bool, float, datetime, str]:
            return (record.superseded_by is None, plan.score(record), record.created_at, record.id)

        removable = [s.record for s in plan.records.values() if plan.is_removable(s.record)]
        for record in sorted(removable, key=worth)[:excess]:
            _prune(plan, record, f"over the cap of {cap:,}")


def _prune(plan: "MaintenancePlan", record: MemoryRecord, reason: str) -> None:
    plan.erase(record, "prune", reason, score=round(plan.score(record), 4))
    plan.note(plan.report.pruned, record.id)
    del plan.records[record.id]
