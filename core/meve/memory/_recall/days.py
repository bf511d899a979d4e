"""Groups memories by the day on which they were added, so that a prompt names each day once."""

from collections.abc import Sequence

from meve.memory.records import MemoryRecord


def day_heading(record: MemoryRecord) -> str:
    """Return the line above the memories of a day. It names the source, unless the user told them."""
    source = "" if record.source == "chat_user" else f", {record.source}"
    return f"{record.created_at:%Y-%m-%d}{source}:"


def group_by_day(records: Sequence[MemoryRecord]) -> list[tuple[str, list[int]]]:
    """Return the headings and, under each, the places of its records; headings and records in the order given."""
    groups: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(day_heading(record), []).append(place)
    return list(groups.items())
