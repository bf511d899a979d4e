"""The tables and lines that the `meve memory` commands print."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from meve.cli._render import NARROW_WIDTH, UNPRINTABLE, format_count, get_console, print_line, print_table, table

if TYPE_CHECKING:
    from meve.memory import MemoryRecord
    from meve.memory._audit.chain import AuditEvent


def format_expiry(record: "MemoryRecord") -> str:
    """Return until when a memory is kept."""
    return "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"


def print_records(records: list["MemoryRecord"]) -> None:
    """Print a table; narrow terminals leave sources out, and tags appear only if a memory has any."""
    tags = ["tags"] * any(r.tags for r in records)
    source = ["source"] * (get_console().width >= NARROW_WIDTH)
    columns = ("id", "text", *tags, "class", *source, "score", "until")
    grid = table(
        format_count(len(records), "memory", "memories"), *columns, right=("score",), fold=("id", "text", "tags")
    )
    for r in records:
        marks = " (on hold)" if r.hold else " (superseded)" if r.superseded_by else ""
        shown = {
            "id": r.id.translate(UNPRINTABLE),
            "text": r.text.translate(UNPRINTABLE) + marks,
            "tags": ", ".join(r.tags).translate(UNPRINTABLE),
            "class": r.policy_class,
            "source": r.source,
            "score": f"{r.reflection:.0f}",
            "until": "for ever" if r.expires_at is None else f"{r.expires_at:%Y-%m-%d %H:%M}",
        }
        grid.add_row(*(shown[column] for column in columns))
    print_table(grid)


def print_erased(label: str, erased: Sequence[str], held: Mapping[str, str]) -> None:
    """Print the ids of erased memories, and those that stay because of a hold."""
    print_line(f"{label}: {', '.join(erased) or 'nothing'}")
    for name, reason in held.items():
        print_line(f"kept, on hold: {name} ({reason})", "yellow")


def print_events(events: "Sequence[AuditEvent]") -> None:
    """Print a table of audit log entries."""
    columns = ("no", "when (UTC)", "user", "memory", "action", "reason")
    grid = table(format_count(len(events), "entry", "entries"), *columns, right=("no",), fold=("reason",))
    for e in events:
        texts = (str(e.user_id), e.record_id, e.action, e.reason)
        grid.add_row(str(e.seq), f"{e.at:%Y-%m-%d %H:%M:%S}", *(text.translate(UNPRINTABLE) for text in texts))
    print_table(grid)
