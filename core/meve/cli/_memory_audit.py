"""`meve memory audit`, `verify` and `maintain`: the audit log, its signed checkpoints, and upkeep."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from meve.cli._error_handling import refuse_ignored
from meve.cli._memory_options import (
    AnyUser,
    AsJson,
    CheckpointFile,
    DryRun,
    File,
    KeyFile,
    PolicyFile,
    Yes,
    confirm,
    open_memory,
    parse_span,
    parse_user,
    read_texts,
)
from meve.cli._memory_tables import print_events, print_texts, print_verification
from meve.cli._render import format_count, print_line, write_json

if TYPE_CHECKING:
    from meve.memory import Action, GovernedMemory

ALTERED_RECORDS = 4
"""Exit status of `verify` if the log is intact, and a memory isn't as it says."""


def audit(
    context: typer.Context,
    file: File,
    user: AnyUser = None,
    action: Annotated[list[str] | None, typer.Option(help="Only this action, such as add; may be repeated.")] = None,
    since: Annotated[str | None, typer.Option(help="Only newer entries, such as 90s, 30m, 24h, 7d or 2w.")] = None,
    record: Annotated[str | None, typer.Option(help="Only entries of this memory.")] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Leave out recalls (the action retrieve).")] = False,
    head: Annotated[bool, typer.Option("--head", help="Print only the end of the log, to keep it elsewhere.")] = False,
    policy: PolicyFile = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the audit log. Each entry says what was done to which memory, when and why.

    A recall has an entry for each memory that it handed out.
    """
    if head:
        refuse_ignored(context, "--head", "user", "action", "since", "record", "changes")
    with open_memory(file, policy, key) as governed_memory:
        if head:
            end = governed_memory.audit.head()
            write_json(asdict(end)) if as_json else print_line(str(end))
            return
        events = governed_memory.audit.events(
            user_id=None if user is None else parse_user(user),
            record_id=record,
            action=cast("list[Action] | None", action),
            since=parse_span(since, "--since"),
        )
    events = [event for event in events if not (changes and event.action == "retrieve")]
    if as_json:
        write_json([event.to_dict() for event in events])
    else:
        print_events(events)


def _read_newer(
    governed_memory: "GovernedMemory", owner: str | int | None, replaced_by: Mapping[str, str]
) -> dict[str, str]:
    """Return by id the texts of the memories that replace others; of a planned summary, which has none yet, a note."""
    texts = read_texts(governed_memory, owner, replaced_by.values(), missing="(a summary, written when it is done)")
    return {name: texts[newer] for name, newer in replaced_by.items()}


def verify(
    file: File,
    head: Annotated[
        str | None, typer.Option(help="An end of the log that audit --head printed.", metavar="HEAD")
    ] = None,
    checkpoints: CheckpointFile = None,
    public_key: Annotated[
        Path | None, typer.Option(help="The keys that verify the checkpoints, in JSON.", metavar="FILE")
    ] = None,
    policy: PolicyFile = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Verify that the audit log is intact, and the memories as it says.

    Exits with 1 if the log isn't intact, and with 4 if a memory was changed, removed or added behind it.
    """
    from meve.memory import AuditHead
    from meve.signing_keys import read_verifying_keys

    keys = None if public_key is None else read_verifying_keys(public_key)
    kept = None if head is None else AuditHead.parse(head)
    with open_memory(file, policy, key) as governed_memory:
        result = governed_memory.audit.verify(kept, checkpoints=checkpoints, public_key=keys)
    if as_json:
        differences = [
            {"id": each.record_id, "user": each.user_id, "differs": each.differs} for each in result.differences
        ]
        data = {"ok": result.ok, "events": result.events, "keyed": result.keyed, "records": result.records}
        data |= {"not_covered": result.not_covered, "checkpoints": result.checkpoints}
        write_json({**data, "at": result.broken_at, "problem": result.problem, "differences": differences})
    else:
        print_verification(result)
    if not result.ok:
        raise typer.Exit(ALTERED_RECORDS if result.differences else 1)


def maintain(
    file: File,
    user: AnyUser = None,
    policy: PolicyFile = None,
    key: KeyFile = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    checkpoints: CheckpointFile = None,
    checkpoint_key: Annotated[
        Path | None, typer.Option(help="The key file whose current key signs a checkpoint.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Apply the policy. Deletes expired memories, and closes or archives what it replaces or no longer shows.

    With --checkpoints and --checkpoint-key, also appends a signed checkpoint of the audit log to a file.
    """
    from meve.memory import Checkpoints
    from meve.signing_keys import SigningKeys

    signed = None
    if checkpoints is not None and checkpoint_key is not None:
        signed = Checkpoints(to=checkpoints, key=SigningKeys.load(checkpoint_key).signing)
    elif checkpoints is not checkpoint_key:
        raise typer.BadParameter("give --checkpoints and --checkpoint-key together")
    with open_memory(file, policy, key, checkpoints=signed) as governed_memory:
        if not dry_run and not yes:
            confirm("Erase memories that the policy no longer keeps?")
        report = governed_memory.maintain(user_id=None if user is None else parse_user(user), dry_run=dry_run)
        planned = [
            (
                f"{step}, of {'all users' if owner is None else owner}",
                read_texts(governed_memory, owner, ids),
                _read_newer(governed_memory, owner, report.replaced_by.get(owner, {})),
            )
            for step in report.counts()
            for owner, ids in getattr(report, step).items()
            if dry_run and ids and not as_json
        ]
    counts, left = report.counts(), sum(report.left_pairs.values())
    if as_json:
        write_json({**counts, "left_pairs": left, "dry_run": dry_run})
    else:
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do"
        print_line(f"would be: {summary}" if dry_run else summary)
        for title, texts, newer in planned:
            print_line(title, "bold")
            print_texts(texts, newer)
        if report.replaced_by and not dry_run:
            print_line("list --user ID --superseded shows what was replaced, and by which text", "dim")
        if left:
            print_line(f"{format_count(left, 'pair', 'pairs')} left to compare: run it again")
