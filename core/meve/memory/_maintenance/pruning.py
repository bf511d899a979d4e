"""Pruning: archive or erase records of low score, and the worst ones beyond the maximum number."""

from datetime import datetime
from typing import TYPE_CHECKING

from meve.memory.records import StoredRecord

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


def prune_low_scores(plan: "MaintenancePlan") -> None:
    """Prune records of some age whose score is below the policy's threshold."""
    rules = plan.policy.pruning
    for stored in list(plan.records.values()):
        is_old = plan.now - stored.record.created_at >= rules.min_age
        if plan.may_hide(stored.record) and is_old and plan.score(stored.record) < rules.below:
            _prune(plan, stored, "pruning.below", f"its score fell below {rules.below:g}")


def enforce_cap(plan: "MaintenancePlan") -> None:
    """Prune closed records, then the worst ones, beyond the policy's maximum for one user."""
    cap = plan.policy.limits.per_user
    if len(plan.records) > cap:

        def worth(stored: StoredRecord) -> tuple[bool, float, datetime, str]:
            record = stored.record
            return (not record.is_closed, plan.score(record), record.created_at, record.id)

        removable = [stored for stored in plan.records.values() if plan.may_hide(stored.record)]
        for stored in sorted(removable, key=worth):
            if len(plan.records) > cap and stored.record.id in plan.records:
                _prune(plan, stored, "limits.per_user", f"over the cap of {cap:,}")


def _prune(plan: "MaintenancePlan", stored: StoredRecord, rule: str, reason: str) -> None:
    record, score = stored.record, round(plan.score(stored.record), 4)
    if plan.policy.pruning.erase:
        plan.erase(record, "prune", reason, plan.report.pruned, rule=rule, evidence={"score": score}, inverse="")
    else:
        plan.archive(stored, "archive", reason, plan.report.archived, rule=rule, score=score)
