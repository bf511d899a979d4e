"""Archiving: take idle records of low score out of every search."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenancePlan


def archive_idle(plan: "MaintenancePlan") -> None:
    """Archive records that have a low score and were idle for long."""
    rules = plan.policy.archiving
    for stored in list(plan.without_items().values()):
        record = stored.record
        idle = plan.now - max(record.touched_at or record.created_at, record.created_at)
        score = plan.score(record)
        if plan.may_hide(record) and idle >= rules.idle and score < rules.below:
            reason, where = f"idle for {idle.days} days, score {score:.0f}", plan.report.archived
            plan.archive(
                stored, "archive", reason, where, rule="archiving.below", score=round(score, 4), idle_days=idle.days
            )
