"""Describe a memory's operations for whoever measures them; ids and scores only if content is wanted."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from meve._telemetry import Value

if TYPE_CHECKING:
    from meve.memory._maintenance.plan import MaintenanceReport
    from meve.memory._recall.searcher import Recall
    from meve.memory._write.eraser import ErasureReport
    from meve.memory.records import MemoryRecord

_COUNT, _ID = "gen_ai.memory.record.count", "gen_ai.memory.record.id"


def describe_record(record: "MemoryRecord", has_content: bool) -> Mapping[str, Value]:
    """Return the attributes of a record that was written."""
    attributes: dict[str, Value] = {_COUNT: 1, "meve.class": record.policy_class, "meve.source": record.source}
    return {**attributes, _ID: record.id} if has_content else attributes


def describe_erasure(report: "ErasureReport", has_content: bool) -> Mapping[str, Value]:  # noqa: ARG001
    """Return the attributes of an erasure."""
    return {_COUNT: len(report.erased), "meve.held": len(report.held)}


def describe_list(found: Sequence[object], has_content: bool) -> Mapping[str, Value]:  # noqa: ARG001
    """Return the attributes of an operation on several items or messages."""
    return {_COUNT: len(found)}


def describe_item_changes(deleted: int, has_content: bool) -> Mapping[str, Value]:  # noqa: ARG001
    """Return the attributes of changes of items."""
    return {"meve.source": "item", "meve.deleted": deleted}


def describe_recall(recall: "Recall", has_content: bool) -> Mapping[str, Value]:
    """Return the attributes of a search."""
    settings = recall.trace.phases[0].settings
    attributes: dict[str, Value] = {
        _COUNT: len(recall.records),
        "meve.tokens": recall.tokens,
        "meve.max_tokens": recall.max_tokens,
        "meve.shed": bool(settings.get("shed")),
        "meve.cached": bool(settings.get("cached")),
    }
    if has_content:
        found = [{"id": each.passage.id, "score": each.score} for each in recall.passages]
        attributes |= {"gen_ai.memory.query.text": recall.query, "gen_ai.memory.records": json.dumps(found)}
    return attributes


def describe_maintenance(report: "MaintenanceReport", has_content: bool) -> Mapping[str, Value]:  # noqa: ARG001
    """Return the attributes of a run of maintenance: how many records each rule concerned."""
    return {f"meve.maintenance.{name}": number for name, number in report.counts().items()}
