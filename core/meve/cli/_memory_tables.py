"""The tables and lines that the `meve memory` commands print."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from meve.cli._render import (
    NARROW_WIDTH,
    UNPRINTABLE,
    format_beginning,
    format_count,
    get_console,
    print_line,
    print_message,
    print_table,
    table,
    write_json,
)

if TYPE_CHECKING:
    from meve.memory import ErasureReport, ImportReport, MemoryRecord
    from meve.memory._audit.chain import AuditEvent, AuditVerification


_HIDDEN = {"--superseded": "replaced", "--archived": "archived", "--messages": "messages"}
"""What `list` leaves out unless an option is given."""


def format_expiry(record: "MemoryRecord") -> str:
    """Return until when a memory is kept."""
    return "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"


def find_option(record: "MemoryRecord", shown: Mapping[str, bool]) -> str | None:
    """Return the option of `list` that a memory needs to be listed; None if it is listed.

    Args:
        record: the memory.
        shown: by option, whether it is given.
    """
    needed = {"--superseded": record.is_closed, "--archived": record.archived, "--messages": record.kind == "message"}
    return next((option for option, is_needed in needed.items() if is_needed and not shown[option]), None)


def print_records(records: list["MemoryRecord"], replacements: Mapping[str, str], hidden: Mapping[str, int]) -> None:
    """Print a table; narrow terminals leave sources and hours out, and tags appear only if a memory has any.

    Args:
        records: the memories.
        replacements: the texts of what replaced some of them, by id.
        hidden: how many others there are, by the option that lists them.
    """
    tags = ["tags"] * any(r.tags for r in records)
    is_wide = get_console().width >= NARROW_WIDTH
    source = ["source"] * is_wide
    columns = ("added", "id", "text", *tags, "class", *source, "score", "until")
    title = format_count(len(records), "memory", "memories")
    if hidden:
        title += f"; not listed: {', '.join(f'{hidden[each]:,} {_HIDDEN[each]} ({each})' for each in sorted(hidden))}"
    if not records:
        print_line(title)
        return
    grid = table(title, *columns, right=("score",), fold=("id", "text", "tags"))
    for r in records:
        marks = " (on hold)" if r.hold else ""
        if r.is_closed:
            newer = replacements.get(r.superseded_by or "")
            marks += " (superseded)" if newer is None else f' (superseded by "{format_beginning(newer)}")'
        elif r.flagged:
            marks += f" ({r.flagged})"
        shown = {
            "added": f"{r.created_at:%Y-%m-%d}",
            "id": r.id.translate(UNPRINTABLE),
            "text": r.text.translate(UNPRINTABLE) + marks,
            "tags": ", ".join(r.tags).translate(UNPRINTABLE),
            "class": r.policy_class,
            "source": r.source,
            "score": f"{r.reflection:.0f}",
            "until": "for ever" if r.expires_at is None else f"{r.expires_at:%Y-%m-%d %H:%M}"[: 16 if is_wide else 10],
        }
        grid.add_row(*(shown[column] for column in columns))
    print_table(grid)


def print_texts(texts: Mapping[str, str], newer: Mapping[str, str] | None = None) -> None:
    """Print ids and the beginnings of their texts; of some, also the text by which they are replaced."""
    for name, text in texts.items():
        print_line(f"  {name}: {format_beginning(text)}")
        if newer is not None and name in newer:
            print_line(f"    replaced by: {format_beginning(newer[name])}")


def print_kept(report: "ErasureReport") -> None:
    """Print the ids of memories that an erasure leaves: on hold, or in the history."""
    for name, reason in report.held.items():
        print_line(f"kept, on hold: {name} ({reason})", "yellow")
    if report.left_closed:
        print_line(f"kept in the history: {', '.join(report.left_closed)} (restore or forget them by id)", "yellow")


def print_import(report: "ImportReport", *, as_json: bool) -> None:
    """Print what an import added, what it left out, and which rows it refused."""
    if as_json:
        write_json(asdict(report))
        return
    print_line(f"{'would add' if report.dry_run else 'added'}: {format_count(len(report.added), 'memory', 'memories')}")
    for label in ("known", "expired", "erased", "derived"):
        if ids := getattr(report, label):
            print_line(f"{label}: {len(ids)}")
    for number, why in report.rejected:
        print_line(f"row {number} refused: {why}".translate(UNPRINTABLE), "yellow")


def print_unknown_user(user: str, report: "ErasureReport", *, as_json: bool) -> None:
    """Print that nothing is stored of a user, and the user of the other type that might be meant."""
    other = report.other_user
    if as_json:
        write_json({"erased": [], "held": {}, "found": False, "other_user": other})
        return
    hint = "" if other is None else f"; did you mean --user {'int:' * isinstance(other, int)}{other}?"
    print_message("error", f"nothing is stored of {user}, nothing was erased{hint}")


def print_verification(result: "AuditVerification") -> None:
    """Print whether the audit log is intact, and which memories aren't as it says."""
    if result.broken_at is not None:
        print_line(f"the log is intact only up to entry {result.events}: {result.problem}", "bold red")
        return
    print_line(f"the log is intact: {format_count(result.events, 'entry', 'entries')}", "green")
    if result.checkpoints:
        print_line(f"as signed: {format_count(result.checkpoints, 'checkpoint', 'checkpoints')}", "green")
    if result.records:
        print_line(f"as the log says: {format_count(result.records, 'memory', 'memories')}", "green")
    if not result.keyed:
        print_line(
            "this finds accidental damage to the log; a memory that is made with an audit key (--key) also shows "
            "deliberate changes, and changed memories",
            "dim",
        )
    elif result.not_covered:
        count = format_count(result.not_covered, "memory", "memories")
        print_line(f"not compared with the log: {count}, written before the log had a key", "dim")
    for each in result.differences:
        user = "all users" if each.user_id is None else each.user_id
        name = f"{each.record_id} of {user}".translate(UNPRINTABLE)
        print_line(f"not as the log says: {name} ({', '.join(each.differs)})", "bold red")


def format_event(event: "AuditEvent") -> str:
    """Return an entry of the audit log in one line, without its memory."""
    return f"{event.at:%Y-%m-%d %H:%M:%S} {event.action}: {format_reason(event)}"


def format_reason(event: "AuditEvent") -> str:
    """Return why an entry's action was done, with the measures that decided, such as a model's probability."""
    evidence = event.detail.get("evidence", {})
    measures = [f"{name} {value:.2f}" for name, value in evidence.items() if isinstance(value, float)]
    return f"{event.reason} ({', '.join(measures)})" if measures else event.reason


def summarise_events(events: "Sequence[AuditEvent]") -> str:
    """Return the number of a memory's log entries, and when it was recalled last."""
    count = format_count(len(events), "log entry", "log entries")
    recalls = [event.at for event in events if event.action == "retrieve"]
    if not recalls:
        return f"{count}; never recalled"
    return f"{count}; recalled {format_count(len(recalls), 'time', 'times')}, last {recalls[-1]:%Y-%m-%d %H:%M} UTC"


def print_events(events: "Sequence[AuditEvent]") -> None:
    """Print a table of audit log entries."""
    columns = ("no", "when (UTC)", "user", "memory", "action", "reason")
    grid = table(format_count(len(events), "entry", "entries"), *columns, right=("no",), fold=("reason",))
    for e in events:
        texts = (str(e.user_id), e.record_id, e.action, format_reason(e))
        grid.add_row(str(e.seq), f"{e.at:%Y-%m-%d %H:%M:%S}", *(text.translate(UNPRINTABLE) for text in texts))
    print_table(grid)
