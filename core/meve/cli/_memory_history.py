"""Descriptions of replaced memories, for the `meve memory` commands."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from meve.memory import Explanation, MemoryRecord, Recall

_CONTRADICTED = "contradicted_by:"


def parse_moment(text: str | None) -> datetime | None:
    """Return a moment such as 2026-05-01 or 2026-05-01T12:00+02:00, in UTC if no zone is given; None for None."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"--as-of must be a date or time such as 2026-05-01 or 2026-05-01T12:00+02:00, got {text!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def describe_closed(record: "MemoryRecord") -> str:
    """Return what replaced a closed memory, since when, and why."""
    by = "its replacement is gone" if record.superseded_by is None else f"replaced by {record.superseded_by}"
    since = "" if record.valid_to is None else f" since {record.valid_to:%Y-%m-%d %H:%M} UTC"
    why = "" if record.superseded_by is None else f" ({record.flagged or 'which says the same or contains it'})"
    return f"{by}{since}{why}"


def find_left_out(recall: "Recall", explanations: Iterable["Explanation"], hidden: Sequence[str]) -> dict[str, str]:
    """Return by id why a recall leaves out memories that one of its memories replaces.

    Args:
        recall: the recall.
        explanations: the memories about its query, closed ones too.
        hidden: the classes that the recall doesn't include.
    """
    shown = {record.id for record in recall.records}
    left_out = {
        c.id: f"{c.reason.removeprefix(_CONTRADICTED)} says otherwise, and is newer or better"
        for c in recall.trace.candidates
        if c.fate == "dropped" and c.reason.startswith(_CONTRADICTED)
    }
    closed = (e.record for e in explanations if e.record.superseded_by in shown and e.record.id not in shown)
    return left_out | {r.id: describe_closed(r) for r in closed if r.policy_class not in hidden}
