"""`meve memory export`, `import` and `reembed`: the commands that move whole memories."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from meve.cli._memory_options import (
    CLASSES,
    SOURCES,
    AsJson,
    DryRun,
    File,
    KeyFile,
    PolicyFile,
    Reason,
    User,
    check_option,
    open_memory,
    parse_user,
    read_json,
)
from meve.cli._memory_tables import print_import
from meve.cli._memory_text import format_export
from meve.cli._render import format_count, print_line, write_json, write_output

if TYPE_CHECKING:
    from meve.memory import ImportFormat
    from meve.memory.policy import PolicyClass, RecordSource

FORMATS = ("json", "text")
"""The forms of an export."""

REFUSED_ROWS = 5
"""Exit status of `import` if rows were refused."""


def export(
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    to: Annotated[Path | None, typer.Option(help="A file; standard output by default.", metavar="FILE")] = None,
    format: Annotated[
        str, typer.Option(help="json, which import reads, or text for people.", metavar="|".join(FORMATS))
    ] = "json",
) -> None:
    """Export all data of a user, the oldest first. Only you may read the file."""
    if format not in FORMATS:
        raise typer.BadParameter(f"--format must be one of {', '.join(FORMATS)}, got {format!r}")
    with open_memory(file, policy, key) as governed_memory:
        data = governed_memory.export(user_id=parse_user(user))
    if to is None:
        write_json(data) if format == "json" else write_output(format_export(data))
    else:
        from meve._private_files import write_private

        write_private(to, json.dumps(data, indent=2) + "\n" if format == "json" else format_export(data))
        print_line(f"{format_count(len(data['records']), 'memory', 'memories')} of {user}: {to}")


def import_(
    data: Annotated[Path, typer.Argument(help="The JSON file to import.", metavar="JSON")],
    file: File,
    user: Annotated[str | None, typer.Option(help="The only owner; other rows are refused.", metavar="ID")] = None,
    format: Annotated[str | None, typer.Option(help="meve, mem0 or langgraph; found out by default.")] = None,
    namespaces: Annotated[
        str | None, typer.Option(help="Where LangGraph's namespaces name the owner: 'memories/{user_id}/*'.")
    ] = None,
    source: Annotated[str, typer.Option(help="The source of memories of mem0.")] = "doc",
    policy_class: Annotated[str, typer.Option("--class", help="The class of memories of mem0.")] = "factual",
    restore_erased: Annotated[bool, typer.Option("--restore-erased", help="Bring back deleted memories.")] = False,
    policy: PolicyFile = None,
    key: KeyFile = None,
    dry_run: DryRun = False,
    reason: Reason = "import",
    as_json: AsJson = False,
) -> None:
    """Import an export of this program, of mem0 or of a LangGraph store. What is known stays as it is.

    Exits with 5 if rows were refused; the others are imported.
    """
    check_option(source, "--source", SOURCES)
    check_option(policy_class, "--class", CLASSES)
    exported = read_json(data)
    with open_memory(file, policy, key, make=not dry_run) as governed_memory:
        report = governed_memory.import_(
            exported, user_id=None if user is None else parse_user(user), format=cast("ImportFormat | None", format),
            namespaces=namespaces, source=cast("RecordSource", source),
            policy_class=cast("PolicyClass", policy_class), restore_erased=restore_erased, dry_run=dry_run,
            reason=reason,
        )  # fmt: skip
    print_import(report, as_json=as_json)
    if report.rejected:
        raise typer.Exit(REFUSED_ROWS)


def reembed(
    file: File,
    embedder: Annotated[str, typer.Option(help="minilm, static, or the name or folder of a model.", metavar="NAME")],
    policy: PolicyFile = None,
    key: KeyFile = None,
    reason: Reason = "on request",
    as_json: AsJson = False,
) -> None:
    """Write new vectors of all memories by another embedder. After an interruption, run it again."""
    with open_memory(file, policy, key, embedder=embedder) as governed_memory:
        report = governed_memory.reembed(reason=reason)
    if as_json:
        write_json({"embedder": report.embedder, "users": report.users, "records": report.records})
    else:
        print_line(f"{format_count(report.records, 'memory', 'memories')} embedded with {report.embedder}")
