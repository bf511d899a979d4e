"""Options and arguments that the `meve memory` commands share."""

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve.errors import UnknownIdError

if TYPE_CHECKING:
    from meve.memory import Checkpoints, GovernedMemory

File = Annotated[Path, typer.Option(envvar="MEVE_MEMORY", help="The memory's file.", metavar="FILE")]
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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, without doing it.")]
Agent = Annotated[str | None, typer.Option(help="The agent's id.", metavar="ID")]
Run = Annotated[str | None, typer.Option(help="The run's id.", metavar="ID")]
SOURCES = ("doc", "chat_user", "chat_assistant", "api_result", "summary")
Reason = Annotated[str, typer.Option(help="The reason, for the audit log.", metavar="TEXT")]


_opening: ContextVar[tuple[Path | None, bool, bool]] = ContextVar("opening", default=(None, False, False))
"""The file with the master key, whether to accept an older database, and whether to reset the clock."""


def keep_opening(
    master_key: MasterKey = None, accept_older: AcceptOlder = False, reset_clock: ResetClock = False
) -> None:
    """Read and change a governed memory. One file holds the memories of all users and the audit log."""
    _opening.set((master_key, accept_older, reset_clock))


@contextmanager
def open_memory(
    file: Path,
    policy: Path | None,
    key: Path | None,
    *,
    make: bool = False,
    embedder: str | None = None,
    checkpoints: "Checkpoints | None" = None,
) -> Iterator["GovernedMemory"]:
    """Open an existing memory, or create one if `make` is true; with `embedder`, to write new vectors."""
    from meve.errors import AuditError, StorageError
    from meve.memory import GovernedMemory, Policy

    if not make and not file.exists():
        raise StorageError(f"there is no memory at {file}: check the path, or create one with meve memory add")
    try:
        secret = None if key is None else key.read_bytes()
    except OSError as cause:
        raise AuditError(f"the audit key {key} can't be read: {cause}") from cause
    loaded = None if policy is None else Policy.from_yaml(policy)
    master_key, accept_older, reset_clock = _opening.get()
    with GovernedMemory.open(
        file, policy=loaded, audit_key=secret, embedder=embedder or os.environ.get("MEVE_EMBEDDER"),
        reembed=embedder is not None, master_key=master_key, accept_older=accept_older,
        reset_clock=reset_clock, checkpoints=checkpoints,
    ) as governed_memory:  # fmt: skip
        yield governed_memory


@contextmanager
def explain_unknown_id(user: str, id: str | None) -> Iterator[None]:
    """Add the command that lists memories to the error about an unknown id."""
    try:
        yield
    except UnknownIdError as cause:
        command = shlex.join(["meve", "memory", "list", "--user", user])
        raise UnknownIdError(f"no memory {id!r:.80} of {user}: {command} lists all") from cause


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


def parse_span(text: str | None) -> timedelta | None:
    """Return a duration such as 90s, 30m, 24h, 7d or 2w; None for None."""
    from meve.memory.policy import parse_duration

    try:
        return None if text is None else parse_duration(text)  # type: ignore[return-value]
    except ValueError as cause:
        raise typer.BadParameter(str(cause)) from None
