"""How do results look on a terminal, and in a pipe? Shared by the commands; data comes from contexts and reports.

On a terminal: colours and tables as wide as it is. In a pipe or a file: the text as it is, tables without frames.
"""

import codecs
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

    from meve.pipeline.context import Context

PIPE_WIDTH = 200
"""Columns of a table that goes into a pipe."""

NARROW = 110
"""With fewer columns, a table shows less."""

STEP = 30.0
"""Seconds between two lines of progress where there is no terminal to draw a bar on."""

SCORES = ("verifier", "follow", "dense", "lexical")
"""The order in which scores stand in a table; others come after them."""

INSUFFICIENT = "not sufficient: nothing in this index was verified as answering the question"
TOO_LARGE = "not sufficient: what was verified doesn't fit into the tokens"

UNPRINTABLE = {code: "�" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}
"""Control characters, which could command a terminal; documents are not to be trusted with it."""


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """So much of the stage is done, of so much."""
        ...


def out() -> Console:
    """Where results go."""
    return _console(stderr=False)


def err() -> Console:
    """Where progress, warnings and errors go."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def write(text: str) -> None:
    """Write a text on stdout as it is; on a terminal, without control characters."""
    console = out()
    console.file.write(text.translate(UNPRINTABLE) if console.is_terminal else text)


def write_json(data: object) -> None:
    """Write one JSON value on stdout."""
    file = out().file
    file.write(json.dumps(data, ensure_ascii=not _is_utf8(file), indent=2, allow_nan=False) + "\n")


def _is_utf8(file: IO[str]) -> bool:
    try:
        return codecs.lookup(getattr(file, "encoding", None) or "utf-8").name == "utf-8"
    except LookupError:
        return False


def show_text(text: str, style: str = "") -> None:
    """Print a context's text and a blank line: as it is; on a terminal, in that style."""
    console = out()
    if style and console.is_terminal:
        console.print(f"{text.translate(UNPRINTABLE)}\n", style=style, soft_wrap=True)
    else:
        write(f"{text}\n\n")


def rule(title: str = "", style: str = "dim") -> None:
    """Print a line across the terminal; a short one in a pipe."""
    console = out()
    if console.is_terminal:
        console.rule(title, style=style, align="left")
    else:
        write(f"--- {title}".rstrip() + "\n")


def say(text: str, style: str = "", *, to: Console | None = None) -> None:
    """Print one line; on a terminal, wrapped between words."""
    console = to or out()
    console.print(text.translate(UNPRINTABLE), style=style or None, soft_wrap=not console.is_terminal)


def complain(kind: str, text: str) -> None:
    """Print an error or a warning on stderr."""
    from rich.text import Text

    line = Text.assemble((f"{kind}: ", "bold red" if kind == "error" else "yellow"), text.translate(UNPRINTABLE))
    err().print(line, soft_wrap=True)


def show_table(made: "Table", *, to: Console | None = None) -> None:
    """Print a table; in a pipe, without what fills its lines up."""
    console = to or out()
    if console.is_terminal:
        console.print(made)
        return
    with console.capture() as captured:
        console.print(made)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


@contextmanager
def progress_bar() -> Iterator[Advance]:
    """Progress on stderr: a bar a stage; a line now and then where stderr is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = err()
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (TextColumn("{task.description:>18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as progress:

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield advance


def _lines(console: Console) -> Advance:
    """A line after every so many seconds; what is quicker says nothing."""
    start = last = time.monotonic()

    def advance(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= STEP:
            last = now
            say(f"{stage}: {done:,} of {total:,}, after {now - start:.0f} s", to=console)

    return advance


def counted(number: int, one: str, many: str) -> str:
    """A number and its noun.

    >>> counted(1, "memory", "memories"), counted(1200, "memory", "memories")
    ('1 memory', '1,200 memories')
    """
    return f"{number:,} {one if number == 1 else many}"


def table(title: str, *columns: str, right: Sequence[str] = (), fold: Sequence[str] = ()) -> "Table":
    """An empty table.

    Args:
        title: stands above it.
        columns: their names.
        right: those of numbers.
        fold: those that give way when the terminal is narrow, by breaking their lines.
    """
    from rich import box
    from rich.table import Table

    made = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    if not out().is_terminal:
        made.box = None
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=name not in fold,
            overflow="fold",
        )
    return made


def verdict(context: "Context") -> str:
    """Passages, tokens and sufficiency, in a line."""
    count, verified = len(context.passages), sum(each.verified for each in context.passages)
    passages = counted(count, "passage", "passages") + (f", {verified} verified" if count else "")
    budget = f"{context.tokens} of {context.max_tokens} tokens by {context.trace.tokens}"
    left_out = any(each.verified and each.phase == "budget" for each in context.trace.candidates)
    why = "sufficient" if context.sufficient else TOO_LARGE if left_out and not verified else INSUFFICIENT
    if context.trace.sufficiency and verified:
        by = context.trace.sufficiency
        why = f"{'' if context.sufficient else 'not '}sufficient ({by['estimate']:.2f}, {by['threshold']:.2f} wanted)"
    return f"{passages} · {budget} · {why}"


def unverified(context: "Context") -> str:
    """Of a context that isn't sufficient: what its text is, in a line."""
    if any(each.verified for each in context.passages):
        return "what was verified may not carry an answer"
    if all(each.origin == "fallback" for each in context.passages):
        return "nothing below was verified: fallback passages, too improbable to count as an answer"
    return f"nothing below was verified (mode {context.trace.mode})"


def show_verdict(context: "Context") -> None:
    """Print passages, tokens and sufficiency; and which passages weren't verified, where others were."""
    say(verdict(context), "green" if context.sufficient else "bold yellow")
    doubtful = [each.passage.id for each in context.passages if not each.verified]
    if doubtful and len(doubtful) < len(context.passages):
        say(f"not verified, and handed over beside what is: {', '.join(doubtful)}", "yellow")


def show_trace(context: "Context", most: int | None = None) -> None:
    """Print the five phases, and every candidate's fate; at most so many that were dropped for one reason."""
    show_table(phase_table(context))
    show_table(candidate_table(context, most))


def phase_table(context: "Context") -> "Table":
    """What each phase took, got, let through and decided by."""
    trace = context.trace
    title = f"phases: {trace.ms:.1f} ms, {trace.embed_ms:.1f} of them for the query's embedding ({trace.embedder})"
    made = table(title, "phase", "ms", "in", "out", "decided by", right=("ms", "in", "out"), fold=("decided by",))
    for phase in trace.phases:
        how = f"skipped: {phase.skipped}" if phase.skipped else _settings(phase.settings)
        made.add_row(
            phase.name,
            f"{phase.ms:.1f}",
            str(phase.received),
            str(phase.returned),
            how,
            style="dim" if phase.skipped else None,
        )
    return made


def candidate_table(context: "Context", most: int | None = None) -> "Table":
    """What became of each candidate, and why. On a narrow terminal, tokens and fates are left out: ranks tell those.

    Args:
        context: whose.
        most: so many that were dropped for one reason are shown, then their number; all, if None.
    """
    candidates = context.trace.candidates
    found = dict.fromkeys(name for candidate in candidates for name in candidate.scores)
    by = sorted(found, key=lambda name: SCORES.index(name) if name in SCORES else len(SCORES))
    more = ["tokens", "fate"] if out().width >= NARROW else []
    made = table(
        f"candidates: {len(candidates)}",
        *("rank", "id", "origin", *by, *more, "reason"),
        right=("rank", "tokens", *by),
        fold=("id", "reason"),
    )
    dropped = Counter[str]()
    for candidate in candidates:
        why = candidate.reason.partition(":")[0]
        dropped[why] += not candidate.rank
        if most is not None and dropped[why] > most:
            continue
        fate = candidate.fate if candidate.rank else f"{candidate.fate} by {candidate.phase}"
        made.add_row(
            str(candidate.rank or ""),
            candidate.id.translate(UNPRINTABLE),
            candidate.origin,
            *(f"{candidate.scores[name]:.3f}" if name in candidate.scores else "" for name in by),
            *(["" if candidate.tokens is None else str(candidate.tokens), fate] if more else []),
            candidate.reason.translate(UNPRINTABLE),
            style="green" if candidate.verified and candidate.rank else "dim" if not candidate.rank else None,
        )
    for why, count in dropped.items():
        if most is not None and count > most:
            made.add_row("", f"… {count - most} more", *[""] * (1 + len(by) + len(more)), why, style="dim")
    return made


def _settings(settings: Mapping[str, Any]) -> str:
    parts = []
    for name, value in settings.items():
        if value is not None:
            parts.append(f"{name} {_shown(value)}")
    return ", ".join(parts)


def _shown(value: object) -> object:
    if isinstance(value, Mapping):  # a calibration: by which method, on how many pairs
        return " ".join(str(value[key]) for key in ("method", "pairs") if value.get(key)) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
