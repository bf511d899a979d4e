"""Descriptions of replaced memories, for the `meve memory` commands."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from meve.cli._memory_options import read_texts
from meve.cli._render import format_beginning
from meve.errors import StorageError, UnknownIdError

if TYPE_CHECKING:
    from meve.memory import GovernedMemory, MemoryRecord, Recall

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


def read_replacements(
    governed_memory: "GovernedMemory",
    user_id: str | int,
    records: Iterable["MemoryRecord"],
    hidden: Collection[str] = (),
) -> dict[str, str]:
    """Return the texts of what replaced these memories, by id, unless it is gone or of a hidden class."""
    texts = {}
    for name in {record.superseded_by for record in records if record.superseded_by is not None}:
        with suppress(UnknownIdError, StorageError):
            newer = governed_memory.get(name, user_id=user_id)
            if newer.policy_class not in hidden:
                texts[name] = newer.text
    return texts


def describe_closed(record: "MemoryRecord", texts: Mapping[str, str]) -> str:
    """Return what replaced a closed memory, with the beginning of its text, since when, and why.

    Args:
        record: the closed memory.
        texts: the texts of replacements, by id; those that are missing aren't told.
    """
    since = "" if record.valid_to is None else f" since {record.valid_to:%Y-%m-%d %H:%M} UTC"
    if record.superseded_by is None:
        return f"its replacement is gone{since}"
    by = name_memory(record.superseded_by, texts.get(record.superseded_by))
    return f"replaced{since} by {by}: {record.flagged or 'it says the same, or contains this'}"


def name_memory(record_id: str, text: str | None) -> str:
    """Return a memory's id and the beginning of its text, if there is one to tell."""
    return record_id if text is None else f'{record_id} ("{format_beginning(text)}")'


def find_left_out(
    governed_memory: "GovernedMemory", user_id: str | int, recall: "Recall", query: str, hidden: Collection[str]
) -> dict[str, str]:
    """Return by id why a recall leaves out memories that one of its memories replaces.

    Args:
        governed_memory: the memory.
        user_id: whose memory.
        recall: the recall.
        query: what it was asked.
        hidden: the classes that the recall doesn't include.
    """
    about = governed_memory.explain(query, user_id=user_id, limit=50, include_archived=True, include_superseded=True)
    shown = {record.id: record.text for record in recall.records}
    winners = {
        c.id: c.reason.removeprefix(_CONTRADICTED)
        for c in recall.trace.candidates
        if c.fate == "dropped" and c.reason.startswith(_CONTRADICTED)
    }
    texts = read_texts(governed_memory, user_id, winners.values())
    left_out = {
        name: f"{name_memory(by, texts[by])} says otherwise, and is newer or better" for name, by in winners.items()
    }
    closed = (e.record for e in about if e.record.superseded_by in shown and e.record.id not in shown)
    return left_out | {r.id: describe_closed(r, shown) for r in closed if r.policy_class not in hidden}
