"""`meve memory copy`: moves a whole memory between files and PostgreSQL databases."""

from pathlib import Path
from typing import Annotated

import typer

from meve.cli._memory_options import AsJson, KeyFile, read_audit_key, refuse_password
from meve.cli._render import format_count, print_line, progress_bar, write_json


def copy(
    source: Annotated[
        str,
        typer.Argument(
            envvar="MEVE_COPY_SOURCE",
            help="The memory: a file, or a PostgreSQL URL.",
            metavar="SOURCE",
            callback=refuse_password,
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            envvar="MEVE_COPY_TARGET",
            help="A new file, or a PostgreSQL URL.",
            metavar="TARGET",
            callback=refuse_password,
        ),
    ],
    source_key_file: Annotated[
        str | None,
        typer.Option(
            envvar="MEVE_SOURCE_KEY_FILE",
            help="The source's key file or its URL, for PostgreSQL.",
            metavar="FILE",
            callback=refuse_password,
        ),
    ] = None,
    source_tenant: Annotated[
        str | None, typer.Option(envvar="MEVE_SOURCE_TENANT", help="The source's tenant.", metavar="NAME")
    ] = None,
    source_master_key: Annotated[
        Path | None, typer.Option(envvar="MEVE_SOURCE_MASTER_KEY", help="Locks the source's keys.", metavar="FILE")
    ] = None,
    target_key_file: Annotated[
        str | None,
        typer.Option(
            envvar="MEVE_TARGET_KEY_FILE",
            help="The target's key file or its URL, for PostgreSQL.",
            metavar="FILE",
            callback=refuse_password,
        ),
    ] = None,
    target_tenant: Annotated[
        str | None, typer.Option(envvar="MEVE_TARGET_TENANT", help="The target's tenant.", metavar="NAME")
    ] = None,
    target_master_key: Annotated[
        Path | None, typer.Option(envvar="MEVE_TARGET_MASTER_KEY", help="Locks the target's keys.", metavar="FILE")
    ] = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Copy a whole memory, with its history and audit log. After an interruption, run it again.

    The options before the command (--key-file and so on) don't count here.
    """
    from meve.memory import MemoryPlace, copy_memory

    with progress_bar() as advance:
        report = copy_memory(
            MemoryPlace(file=source, key_file=source_key_file, tenant=source_tenant, master_key=source_master_key),
            MemoryPlace(file=target, key_file=target_key_file, tenant=target_tenant, master_key=target_master_key),
            audit_key=read_audit_key(key),
            progress=advance,
        )
    numbers = {"users": report.users, "records": report.records, "archived": report.archived}
    if as_json:
        write_json({**numbers, "events": report.head.seq, "head": str(report.head)})
        return
    counts = ", ".join(
        [
            format_count(report.users, "user", "users"),
            format_count(report.records, "memory", "memories"),
            f"{report.archived} archived",
            format_count(report.head.seq, "log entry", "log entries"),
        ]
    )
    print_line(f"copied and verified: {counts}")
