"""Options and arguments that the `meve memory` commands share."""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from meve._postgres import is_postgres_url
from meve.errors import ConfigurationError, StorageError, UnknownIdError

if TYPE_CHECKING:
    from meve.memory import Checkpoints, GovernedMemory


def refuse_password(context: typer.Context, parameter: typer.CallbackParam, place: str | None) -> str | None:
    """Refuse a URL with a password on the command line, where other users of the machine can read it."""
    source = context.get_parameter_source(parameter.name or "")
    if (
        place
        and is_postgres_url(place)
        and _has_password(place)
        and source is not None
        and source.name == "COMMANDLINE"
    ):
        instead = f"set {parameter.envvar} instead, or " if parameter.envvar else ""
        raise typer.BadParameter(
            "the URL holds a password, which others can read in the list of processes: "
            f"{instead}leave the password out, and put it in PGPASSWORD or ~/.pgpass"
        )
    return place


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # the driver will say that it is no URL
        return False
    return parts.password is not None or bool({"password", "sslpassword"} & parse_qs(parts.query).keys())


File = Annotated[
    str,
    typer.Option(
        envvar="MEVE_MEMORY",
        help="The memory: a file, or postgresql://user@host/database.",
        metavar="FILE",
        callback=refuse_password,
    ),
]
User = Annotated[str, typer.Option(help="The user's id; write a whole number as int:42.", metavar="ID")]
AnyUser = Annotated[str | None, typer.Option(help="Only this user.", metavar="ID")]
PolicyFile = Annotated[Path | None, typer.Option(envvar="MEVE_POLICY", help="A policy in YAML.", metavar="FILE")]
KeyFile = Annotated[
    Path | None, typer.Option(envvar="MEVE_AUDIT_KEY", help="The key of the audit log.", metavar="FILE")
]
MasterKey = Annotated[
    Path | None,
    typer.Option(envvar="MEVE_MASTER_KEY", help="The key that locks the file of the memory's keys.", metavar="FILE"),
]
RecordKeys = Annotated[
    str | None,
    typer.Option(
        envvar="MEVE_KEY_FILE",
        help="For PostgreSQL, the file of the memory's keys, or a database on another server.",
        metavar="FILE",
        callback=refuse_password,
    ),
]
Tenant = Annotated[
    str | None, typer.Option(envvar="MEVE_TENANT", help="Whose memory in a PostgreSQL database.", metavar="NAME")
]
AcceptOlder = Annotated[
    bool, typer.Option("--accept-older", help="Open a database that is older than its keys, and destroy newer keys.")
]
ResetClock = Annotated[
    bool, typer.Option("--reset-clock", help="Forget the latest time that the file saw: the clock was wrongly ahead.")
]
CheckpointFile = Annotated[Path | None, typer.Option(help="The file of the signed checkpoints.", metavar="FILE")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before erasing.")]
Archived = Annotated[bool, typer.Option("--archived", help="Include archived memories.")]
Superseded = Annotated[bool, typer.Option("--superseded", help="Include memories that another one replaced.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, without doing it.")]
Agent = Annotated[str | None, typer.Option(help="The agent's id.", metavar="ID")]
Run = Annotated[str | None, typer.Option(help="The run's id.", metavar="ID")]
CLASSES = ("canonical", "factual", "intent_bound", "ephemeral", "private", "instruction")
SOURCES = ("doc", "chat_user", "chat_assistant", "api_result", "summary")
Reason = Annotated[str, typer.Option(help="The reason, for the audit log.", metavar="TEXT")]


_opening: ContextVar[dict[str, Any]] = ContextVar("opening", default={})  # noqa: B039 - it is never changed
"""The arguments of `GovernedMemory.open` besides the file."""


def keep_opening(
    key_file: RecordKeys = None,
    tenant: Tenant = None,
    master_key: MasterKey = None,
    accept_older: AcceptOlder = False,
    reset_clock: ResetClock = False,
) -> None:
    """Read and change a governed memory: that of a file, or of a tenant in a PostgreSQL database.

    It holds the memories of all users and the audit log.
    """
    given = {"master_key": master_key, "accept_older": accept_older, "reset_clock": reset_clock}
    _opening.set({"key_file": key_file, "tenant": tenant, **given})


@contextmanager
def open_memory(
    file: str,
    policy: Path | None,
    key: Path | None,
    *,
    make: bool = False,
    embedder: str | None = None,
    checkpoints: "Checkpoints | None" = None,
) -> Iterator["GovernedMemory"]:
    """Open an existing memory, or create one if `make` is true; with `embedder`, to write new vectors."""
    from meve.memory import GovernedMemory, Policy
    from meve.memory.stores._opening import check_exists

    options = _opening.get()
    if not make:
        check_exists(file, options.get("tenant"))
    loaded = None if policy is None else Policy.from_yaml(policy)
    with GovernedMemory.open(
        file, policy=loaded, audit_key=read_audit_key(key), embedder=embedder or os.environ.get("MEVE_EMBEDDER"),
        reembed=embedder is not None, checkpoints=checkpoints, **options,
    ) as governed_memory:  # fmt: skip
        yield governed_memory


def read_audit_key(key: Path | None) -> bytes | None:
    """Return the audit key in a file; None for None.

    Raises:
        AuditError: it can't be read.
    """
    from meve.errors import AuditError

    try:
        return None if key is None else key.read_bytes()
    except OSError as cause:
        raise AuditError(f"the audit key {key} can't be read: {cause}") from cause


@contextmanager
def explain_unknown_id(user: str, id: str | None) -> Iterator[None]:
    """Add the command that lists memories to the error about an unknown id."""
    try:
        yield
    except UnknownIdError as cause:
        command = shlex.join(["meve", "memory", "list", "--user", user])
        raise UnknownIdError(f"no memory {id!r:.80} of {user}: {command} lists all") from cause


def confirm(question: str) -> None:
    """Ask before an erasure.

    Raises:
        Abort: the answer is no.
        ConfigurationError: there is nobody to ask.
    """
    try:
        typer.confirm(question, abort=True, err=True)
    except typer.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        typer.echo(err=True)  # ends the line of the question
        raise ConfigurationError("nothing was erased: without a terminal, --yes must confirm it") from None


def read_texts(
    governed_memory: "GovernedMemory", user_id: str | int | None, ids: Iterable[str], *, missing: str = "(expired)"
) -> dict[str, str]:
    """Return the texts of a user's memories by id; a note in brackets for one that has none to show."""
    return {id: _read_text(governed_memory, user_id, id, missing) for id in ids}


def _read_text(governed_memory: "GovernedMemory", user_id: str | int | None, id: str, missing: str) -> str:
    if user_id is None:
        return "(shared)"
    try:
        return governed_memory.get(id, user_id=user_id).text
    except UnknownIdError:
        return missing
    except StorageError:
        return "(unreadable)"


def parse_user(name: str) -> str | int:
    """Return the user's id; `int:42` is the number 42."""
    if not name.startswith("int:"):
        return name
    try:
        return int(name.removeprefix("int:"))
    except ValueError:
        raise typer.BadParameter(f"--user must be a text, or a whole number such as int:42, got {name}") from None


def read_json(file: Path) -> object:
    """Return the contents of a JSON file.

    Raises:
        ValidationError: it can't be read, or is no JSON.
    """
    from meve.errors import ValidationError

    try:
        return json.loads(file.read_bytes())
    except OSError as cause:
        raise ValidationError(f"{file} can't be read: {cause}; check the path") from cause
    except (ValueError, RecursionError) as cause:
        raise ValidationError(f"{file} is no JSON ({cause}): give an exported file") from cause


def check_option(value: str | None, option: str, allowed: Sequence[str]) -> None:
    """Raise BadParameter unless the value of an option is one of these, or None."""
    if value is not None and value not in allowed:
        raise typer.BadParameter(f"{option} must be one of {', '.join(allowed)}, got {value!r}")


def parse_span(text: str | None, option: str) -> timedelta | None:
    """Return the duration that an option gives, such as 90s, 30m, 24h, 7d or 2w; None for None."""
    from meve.memory.policy import parse_duration

    try:
        return None if text is None else parse_duration(text)  # type: ignore[return-value]
    except ValueError as cause:
        raise typer.BadParameter(f"{option} {cause}, got {text!r}") from None
