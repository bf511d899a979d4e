"""`meve memory`: a governed memory in a file, from the command line."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from meve.cli._error_handling import guarded
from meve.cli._render import NARROW, UNPRINTABLE, counted, out, say, show_table, show_text, table, write_json
from meve.errors import UnknownIdError

if TYPE_CHECKING:
    from meve.memory import Erased, GovernedMemory, MemoryRecord
    from meve.memory._audit.chain import Action
    from meve.memory.policy import PolicyClass, Source

memory = typer.Typer(
    name="memory",
    help="A governed memory of each user, in one file. What is remembered, for how long, and an account of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Option("--file", envvar="MEVE_MEMORY", help="Where the memory is kept.", metavar="FILE")]
User = Annotated[str, typer.Option("--user", help="Whose. A whole number is given as int:42.", metavar="ID")]
AnyUser = Annotated[str | None, typer.Option("--user", help="Only this user's.", metavar="ID")]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", envvar="MEVE_POLICY", help="A policy in YAML; else the default.", metavar="FILE"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", envvar="MEVE_AUDIT_KEY", help="The audit log's key, if it has one.", metavar="FILE"),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before erasing.")]
Archived = Annotated[bool, typer.Option("--archived", help="Archived ones too.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
SOURCES = ("doc", "chat_user", "chat_assistant", "api_result", "summary")
Reason = Annotated[str, typer.Option("--reason", help="For the audit log.", metavar="TEXT")]


@contextmanager
def _opened(file: Path, policy: Path | None, key: Path | None, *, make: bool = False) -> Iterator["GovernedMemory"]:
    from meve.errors import AuditError, StorageError
    from meve.memory import GovernedMemory, Policy

    if not make and not file.exists():
        raise StorageError(f"there is no memory at {file}: look at its name; meve memory add makes one")
    try:
        secret = None if key is None else key.read_bytes()
    except OSError as cause:
        raise AuditError(f"the audit key {key} can't be read: {cause}") from cause
    chosen = None if policy is None else Policy.from_yaml(policy)
    with GovernedMemory.open(file, policy=chosen, audit_key=secret) as found:
        yield found


@contextmanager
def _naming(user: str, id: str | None) -> Iterator[None]:
    """Around what asks for a memory by its id: of one that there is not, the next step is a command."""
    try:
        yield
    except UnknownIdError as cause:
        how = shlex.join(["meve", "memory", "list", "--user", user])
        raise UnknownIdError(f"no memory {id!r:.80} of {user}: {how} tells which there are") from cause


def _user(name: str) -> str | int:
    if not name.startswith("int:"):
        return name
    try:
        return int(name.removeprefix("int:"))
    except ValueError:
        raise typer.BadParameter(f"{name} is no whole number: give int:42, say") from None


def _span(text: str | None) -> timedelta | None:
    from meve.memory.policy import span

    try:
        return None if text is None else span(text)  # type: ignore[return-value]
    except ValueError as cause:
        raise typer.BadParameter(str(cause)) from None


def add(
    text: Annotated[str, typer.Argument(help="What to remember.")],
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    source: Annotated[str, typer.Option(help=f"{', '.join(SOURCES[:-1])} or {SOURCES[-1]}.")] = "chat_user",
    policy_class: Annotated[
        str | None, typer.Option("--class", help="canonical, factual, intent_bound, ephemeral or private.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Its name; one is made otherwise.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="What it is about; may be repeated.")] = None,
    session: Annotated[str | None, typer.Option(help="The conversation that it is from.")] = None,
    ttl: Annotated[str | None, typer.Option(help="How long it lives: 90s, 30m, 24h, 7d, 2w.")] = None,
    reason: Reason = "on request",
    as_json: AsJson = False,
) -> None:
    """Remember something of a user's."""
    if source not in SOURCES:
        raise typer.BadParameter(f"--source is {source!r}: choose one of {', '.join(SOURCES)}")
    with _opened(file, policy, key, make=True) as found:
        made = found.add(
            text, user_id=_user(user), source=cast("Source", source),
            policy_class=cast("PolicyClass | None", policy_class), id=id, tags=tag, session_id=session,
            ttl=_span(ttl), reason=reason,
        )  # fmt: skip
    _tell(as_json, made.to_dict(), lambda: say(f"remembered {made.id}: {made.policy_class}, {_until(made)}"))


def search(
    query: Annotated[str, typer.Argument(help="The question.")],
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Any of these.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Private memories too.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Let the verifier judge.")] = False,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 10,
    max_tokens: Annotated[int, typer.Option(help="The most tokens of the text.")] = 512,
    as_json: AsJson = False,
) -> None:
    """What is remembered on a question, as it would enter a prompt."""
    with _opened(file, policy, key) as found:
        recall = found.search(
            query, user_id=_user(user), tags=tag, include_private=private, verify=verify, limit=limit,
            max_tokens=max_tokens,
        )  # fmt: skip

    def shown() -> None:
        show_text(recall.text or "nothing")
        many = counted(len(recall.records), "memory", "memories")
        say(f"{many}, {recall.tokens} of {recall.max_tokens} tokens by {recall.trace.tokens}")

    _tell(as_json, recall.to_dict(), shown)


def list_(
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    session: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    archived: Archived = False,
    as_json: AsJson = False,
) -> None:
    """All that is remembered of a user."""
    with _opened(file, policy, key) as found:
        records = found.list(user_id=_user(user), session_id=session, include_archived=archived)
    _tell(as_json, [r.to_dict() for r in records], lambda: _show_records(records))


def explain(
    about: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    archived: Archived = False,
    as_json: AsJson = False,
) -> None:
    """What is remembered about something, and why."""
    with _opened(file, policy, key) as found:
        answers = found.explain(about, user_id=_user(user), include_archived=archived)

    def shown() -> None:
        for each in answers:
            say(f"{each.record.id}: {each.record.text}", "bold")
            say(f"  score {each.score:.2f}, reflection {each.reflection:.0f}; {each.why}")
            for event in each.events:
                say(f"  {event.at:%Y-%m-%d %H:%M:%S} {event.action}: {event.reason}", "dim")
        if not answers:
            say("nothing")

    data = [
        {"record": e.record.to_dict(), "score": e.score, "reflection": e.reflection, "why": e.why,
         "archived": e.archived, "events": [event.to_dict() for event in e.events]}
        for e in answers
    ]  # fmt: skip
    _tell(as_json, data, shown)


def forget(
    user: User,
    file: File,
    id: Annotated[str | None, typer.Argument(help="The memory to forget.", metavar="[ID]")] = None,
    everything: Annotated[bool, typer.Option("--everything", help="All of the user's.")] = False,
    policy: PolicyFile = None,
    key: KeyFile = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    reason: Reason = "on request",
    as_json: AsJson = False,
) -> None:
    """Erase a memory, or all of a user's, for good. Text, vector, words and archive go."""
    if (id is None) != everything:
        raise typer.BadParameter("give either a memory's id, or --everything")
    with _opened(file, policy, key) as found, _naming(user, id):
        who = _user(user)

        def erased(*, dry_run: bool) -> "Erased":
            if id is None:
                return found.forget_user(user_id=who, reason=reason, dry_run=dry_run)
            return found.delete(id, user_id=who, reason=reason, dry_run=dry_run)

        if dry_run or not yes:
            would = erased(dry_run=True)
        if dry_run:
            _tell(
                as_json,
                {"would_erase": list(would.erased), "held": dict(would.held)},
                lambda: _show_erased("would erase", would.erased, would.held),
            )
            return
        if not yes:
            many = counted(len(would.erased), "memory", "memories")
            typer.confirm(f"Erase {many} of {user} for good?", abort=True, err=True)
        done = erased(dry_run=False)
    data = {"erased": list(done.erased), "held": dict(done.held), "scrubbed": done.scrubbed}
    _tell(as_json, data, lambda: _show_erased("erased", done.erased, done.held))


def export(
    user: User,
    file: File,
    policy: PolicyFile = None,
    key: KeyFile = None,
    to: Annotated[Path | None, typer.Option("--to", help="A file; standard output otherwise.", metavar="FILE")] = None,
) -> None:
    """All that there is of a user, as JSON."""
    with _opened(file, policy, key) as found:
        data = found.export(user_id=_user(user))
    if to is None:
        write_json(data)
    else:
        to.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
        say(f"{counted(len(data['records']), 'memory', 'memories')} of {user}: {to}")


def hold(
    id: Annotated[str, typer.Argument(help="The memory.")],
    user: User,
    file: File,
    why: Annotated[str, typer.Option(help="Why nothing may erase it.", metavar="TEXT")] = "held",
    release: Annotated[bool, typer.Option("--release", help="End the hold.")] = False,
    policy: PolicyFile = None,
    key: KeyFile = None,
    reason: Reason = "on request",
    as_json: AsJson = False,
) -> None:
    """Let nothing change or erase a memory, until it is released."""
    with _opened(file, policy, key) as found, _naming(user, id):
        who = _user(user)
        if release:
            found.release(id, user_id=who, reason=reason)
        else:
            found.hold(id, user_id=who, why=why, reason=reason)
    data = {"id": id, "hold": "" if release else why}
    _tell(as_json, data, lambda: say(f"{id}: {'released' if release else f'on hold, {why}'}"))


def audit(
    file: File,
    user: AnyUser = None,
    action: Annotated[list[str] | None, typer.Option("--action", help="Only these: add, delete, expire, …")] = None,
    since: Annotated[str | None, typer.Option(help="No older than 90s, 30m, 24h, 7d, 2w.")] = None,
    record: Annotated[str | None, typer.Option(help="Only of this memory.")] = None,
    policy: PolicyFile = None,
    key: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """What was done, when, to which memory, and why."""
    with _opened(file, policy, key) as found:
        events = found.audit.events(
            user_id=None if user is None else _user(user),
            record_id=record,
            action=cast("list[Action] | None", action),
            since=_span(since),
        )

    def shown() -> None:
        columns = ("no", "when (UTC)", "user", "memory", "action", "reason")
        made = table(counted(len(events), "entry", "entries"), *columns, right=("no",), fold=("reason",))
        for e in events:
            told = (str(e.user_id), e.record_id, e.action, e.reason)
            made.add_row(str(e.seq), f"{e.at:%Y-%m-%d %H:%M:%S}", *(each.translate(UNPRINTABLE) for each in told))
        show_table(made)

    _tell(as_json, [e.to_dict() for e in events], shown)


def verify(file: File, policy: PolicyFile = None, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Whether the audit log is whole; ends with 1 if it isn't."""
    with _opened(file, policy, key) as found:
        done = found.audit.verify()

    def shown() -> None:
        if done.ok:
            keyed = "" if done.keyed else "; without a key this shows accidents, and not intent"
            many = counted(done.events, "entry", "entries")
            say(f"{many}, each in its place as it was written{keyed}", "green")
        else:
            say(f"the log holds up to entry {done.events}: {done.problem}", "bold red")

    _tell(
        as_json,
        {"ok": done.ok, "events": done.events, "keyed": done.keyed, "at": done.at, "problem": done.problem},
        shown,
    )
    if not done.ok:
        raise typer.Exit(1)


def maintain(
    file: File,
    user: AnyUser = None,
    policy: PolicyFile = None,
    key: KeyFile = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Expire, prune, merge, summarise and archive, as the policy says."""
    with _opened(file, policy, key) as found:
        if not dry_run and not yes:
            typer.confirm("Erase what the policy no longer keeps?", abort=True, err=True)
        done = found.maintain(user_id=None if user is None else _user(user), dry_run=dry_run)
    counts = done.counts()
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do"
    _tell(as_json, {**counts, "dry_run": dry_run}, lambda: say(f"would be: {said}" if dry_run else said))


def stats(file: File, policy: PolicyFile = None, key: KeyFile = None, as_json: AsJson = False) -> None:
    """How much there is."""
    with _opened(file, policy, key) as found:
        counts = found.stats()
    data = {name: getattr(counts, name) for name in ("users", "records", "archived", "events", "bytes")}
    _tell(as_json, data, lambda: say(", ".join(counted(n, name.removesuffix("s"), name) for name, n in data.items())))


def _tell(as_json: bool, data: Any, shown: Callable[[], None]) -> None:  # noqa: ANN401
    if as_json:
        write_json(data)
    else:
        shown()


def _until(record: "MemoryRecord") -> str:
    return "for ever" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"


def _show_records(records: list["MemoryRecord"]) -> None:
    """As a table. On a narrow terminal sources are left out, and where no memory has tags, those."""
    tags = ["tags"] * any(r.tags for r in records)
    source = ["source"] * (out().width >= NARROW)
    columns = ("id", "text", *tags, "class", *source, "score", "until")
    made = table(counted(len(records), "memory", "memories"), *columns, right=("score",), fold=("id", "text", "tags"))
    for r in records:
        marks = " (on hold)" if r.hold else " (superseded)" if r.superseded_by else ""
        shown = {
            "id": r.id.translate(UNPRINTABLE),
            "text": r.text.translate(UNPRINTABLE) + marks,
            "tags": ", ".join(r.tags).translate(UNPRINTABLE),
            "class": r.policy_class,
            "source": r.source,
            "score": f"{r.reflection:.0f}",
            "until": _day(r.expires_at),
        }
        made.add_row(*(shown[column] for column in columns))
    show_table(made)


def _day(moment: datetime | None) -> str:
    return "for ever" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _show_erased(what: str, erased: Any, held: Mapping[str, str]) -> None:  # noqa: ANN401
    say(f"{what}: {', '.join(erased) or 'nothing'}")
    for name, why in held.items():
        say(f"on hold, stays: {name} ({why})", "yellow")


for _command in (add, search, explain, forget, export, hold, audit, verify, maintain, stats):
    memory.command()(guarded(_command))
memory.command("list")(guarded(list_))
