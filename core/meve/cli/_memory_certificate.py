"""`meve memory certificate`: certifies what was erased of a user, and checks a certificate."""

import json
from pathlib import Path
from typing import Annotated

import typer

from meve.cli._error_handling import refuse_ignored
from meve.cli._memory_options import AsJson, File, KeyFile, PolicyFile, open_memory, parse_span, parse_user
from meve.cli._render import format_count, print_line, write_json

INVALID_CERTIFICATE = 4
"""Exit status of `certificate --check` if the certificate doesn't hold."""


def certificate(
    context: typer.Context,
    file: File,
    user: Annotated[
        str | None, typer.Option(help="The user's id; write a whole number as int:42.", metavar="ID")
    ] = None,
    id: Annotated[list[str] | None, typer.Argument(help="Ids of erased memories; all by default.")] = None,
    since: Annotated[str | None, typer.Option(help="Only newer erasures, such as 90s, 30m, 24h, 7d or 2w.")] = None,
    to: Annotated[Path | None, typer.Option(help="A file; standard output by default.", metavar="FILE")] = None,
    check: Annotated[Path | None, typer.Option(help="Check this certificate instead.", metavar="FILE")] = None,
    sign: Annotated[
        Path | None, typer.Option(help="A key that signs or checks; the audit key by default.", metavar="FILE")
    ] = None,
    policy: PolicyFile = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Certify which memories of a user were erased, as JSON without their texts. Or check a certificate.

    Exits with 4 if a checked certificate doesn't hold.
    """
    from meve._private_files import write_private
    from meve.errors import ValidationError
    from meve.memory import ErasureCertificate

    if (user is None) == (check is None):
        raise typer.BadParameter("give either --user or --check")
    if check is not None:
        refuse_ignored(context, "--check", "id", "since", "to")
    signing = None if sign is None else _read(sign)
    with open_memory(file, policy, key) as governed_memory:
        if check is None:
            issued = governed_memory.audit.certificate(
                user_id=parse_user(user or ""), record_ids=id or None, since=parse_span(since, "--since"), key=signing
            )
            if to is None:
                write_json(issued.to_dict())
            else:
                write_private(to, json.dumps(issued.to_dict(), indent=2) + "\n")
                print_line(f"{format_count(len(issued.entries), 'erasure', 'erasures')} of {user}: {to}")
            return
        try:
            given = ErasureCertificate.from_dict(json.loads(_read(check)))
        except ValueError as cause:
            raise ValidationError(f"{check} is no certificate: {cause}") from cause
        result = governed_memory.audit.check_certificate(given, key=signing)
    if as_json:
        write_json({"ok": result.ok, "signed": result.signed, "problems": list(result.problems)})
    elif result.ok:
        note = "" if result.signed else "; without a key, its signature isn't checked"
        print_line(f"the certificate holds: {format_count(len(given.entries), 'erasure', 'erasures')}{note}", "green")
    else:
        for problem in result.problems:
            print_line(f"the certificate doesn't hold: {problem}", "bold red")
    if not result.ok:
        raise typer.Exit(INVALID_CERTIFICATE)


def _read(file: Path) -> bytes:
    from meve.errors import StorageError

    try:
        return file.read_bytes()
    except OSError as cause:
        raise StorageError(f"{file} can't be read: {cause}") from cause
