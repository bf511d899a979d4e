"""Output of the commands: tables, messages and progress.

A terminal gets colours, and tables of its width. A pipe or a file gets plain text, and tables without frames.
"""

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

    from meve.pipeline.context import Context
    from meve.types import StageProgress

PIPE_WIDTH = 200
"""The width of tables in a pipe."""

NARROW_WIDTH = 110
"""The terminal width below which tables leave columns out."""

PROGRESS_SECONDS = 30.0
"""The seconds between two lines of progress without a terminal."""

SCORES = ("verifier", "follow", "dense", "lexical")
"""The order of scores in a table; other scores follow."""

BEGINNING = 60
"""The most characters by which a text is named."""

UNPRINTABLE = {code: "�" for code in (*range(32), 127, *range(128, 160)) if chr(code) not in "\n\t"}
"""Control characters, which documents could use to control the terminal."""


def get_console(*, stderr: bool = False) -> Console:
    """Return the console for results; or with `stderr`, the one for progress, warnings and errors."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def write_output(text: str) -> None:
    """Write a text on stdout unchanged, at once; on a terminal, without control characters."""
    console = get_console()
    console.file.write(text.translate(UNPRINTABLE) if console.is_terminal else text)
    console.file.flush()


def write_json(data: object) -> None:
    """Write one JSON value on stdout, in ASCII if the stream isn't UTF-8."""
    file = get_console().file
    encoding = str(getattr(file, "encoding", None) or "utf-8").lower()
    file.write(json.dumps(data, ensure_ascii=encoding not in ("utf-8", "utf8"), indent=2, allow_nan=False) + "\n")


def print_text(text: str, style: str = "", start: int = 0) -> None:
    """Print a context's text and a blank line; on a terminal, in a style from the character `start` on."""
    from rich.text import Text

    console = get_console()
    if style and console.is_terminal:
        shown = text.translate(UNPRINTABLE)
        console.print(Text.assemble(shown[:start], (f"{shown[start:]}\n", style)), soft_wrap=True)
    else:
        write_output(f"{text}\n\n")


def print_separator(title: str = "", style: str = "dim") -> None:
    """Print a line across the terminal, or a short one in a pipe."""
    console = get_console()
    if console.is_terminal:
        console.rule(title, style=style, align="left")
    else:
        write_output(f"--- {title}".rstrip() + "\n")


def print_line(text: str, style: str = "", *, to: Console | None = None) -> None:
    """Print one line; on a terminal, it is wrapped between words."""
    console = to or get_console()
    console.print(text.translate(UNPRINTABLE), style=style or None, soft_wrap=not console.is_terminal)


def print_message(kind: str, text: str) -> None:
    """Print an error or a warning on stderr."""
    from rich.text import Text

    line = Text.assemble((f"{kind}: ", "bold red" if kind == "error" else "yellow"), text.translate(UNPRINTABLE))
    get_console(stderr=True).print(line, soft_wrap=True)


@contextmanager
def printed_log() -> Iterator[None]:
    """Print the warnings that MeVe logs meanwhile, which are silent elsewhere unless logging is configured."""

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_message("warning", record.getMessage())

    logger, printer = logging.getLogger("meve"), Printer(logging.WARNING)
    logger.addHandler(printer)
    try:
        yield
    finally:
        logger.removeHandler(printer)


def print_table(grid: "Table", *, to: Console | None = None) -> None:
    """Print a table; in a pipe, without trailing spaces."""
    console = to or get_console()
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as captured:
        console.print(grid)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


@contextmanager
def progress_bar() -> Iterator["StageProgress"]:
    """Show progress on stderr: a bar for each stage, or a line now and then without a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    console = get_console(stderr=True)
    if not console.is_terminal:
        yield _line_progress(console)
        return
    columns = (TextColumn("{task.description:>18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console) as progress:

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield advance


def _line_progress(console: Console) -> "StageProgress":
    """Return a function that prints a line every `PROGRESS_SECONDS`."""
    start = last = time.monotonic()

    def advance(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS:
            last = now
            print_line(f"{stage}: {done:,} of {total:,}, after {now - start:.0f} s", to=console)

    return advance


def format_count(number: int, one: str, many: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "memory", "memories"), format_count(1200, "memory", "memories")
    ('1 memory', '1,200 memories')
    """
    return f"{number:,} {one if number == 1 else many}"


def format_beginning(text: str) -> str:
    """Return a text's beginning in one line, at most `BEGINNING` characters."""
    line = " ".join(text.split()).translate(UNPRINTABLE)
    return line if len(line) <= BEGINNING else f"{line[: BEGINNING - 1].rstrip()}…"


def table(title: str, *columns: str, right: Sequence[str] = (), fold: Sequence[str] = ()) -> "Table":
    """Return an empty table.

    Args:
        title: the text above the table.
        columns: the columns' names.
        right: the right-aligned columns.
        fold: the columns that wrap their lines on a narrow terminal.
    """
    from rich import box
    from rich.table import Table

    grid = Table(title=title or None, title_justify="left", title_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    grid.box = box.SIMPLE_HEAD if get_console().is_terminal else None
    for name in columns:
        justify: Literal["right", "left"] = "right" if name in right else "left"
        grid.add_column(name, justify=justify, no_wrap=name not in fold, overflow="fold")
    return grid


def format_verdict(context: "Context") -> str:
    """Return passages, tokens and sufficiency in one line."""
    count, verified = len(context.passages), sum(each.verified for each in context.passages)
    passages = format_count(count, "passage", "passages") + (f", {verified} verified" if count else "")
    budget = f"{context.tokens} of {context.max_tokens} tokens by {context.trace.tokens}"
    by = context.trace.sufficiency
    if not context.sufficient:
        why = f"not sufficient: {by['reason']}"
    elif by:
        why = f"sufficient (estimate {by['estimate']:.2f}, threshold {by['threshold']:.2f})"
    else:
        why = "sufficient"
    read = ", ".join(f"{word} as {other}" for word, other in context.corrections.items())
    return f"{passages} · {budget} · {why}" + (f" · read {read}" if read else "")


def find_warnings(context: "Context") -> list[str]:
    """Return the warnings in the trace, such as a filter's name that no passage has."""
    return [sentence for phase in context.trace.phases for sentence in phase.settings.get("warnings", ())]


def explain_unverified(context: "Context") -> str:
    """Return what the text of an insufficient context is, in one line."""
    if any(each.verified for each in context.passages):
        return "the verified passages may not suffice for an answer"
    if all(each.origin in ("fallback", "fill") for each in context.passages):
        return "no passage below was verified: all have too low a probability or weren't scored"
    return f"no passage below was verified (mode {context.trace.mode})"


def find_unverified(context: "Context") -> int:
    """Return where the text's first passage that wasn't verified begins; the text's length if all were."""
    places = (context.text.find(each.passage.content) for each in context.passages if not each.verified)
    return min((place for place in places if place >= 0), default=len(context.text))


def print_verdict(context: "Context") -> None:
    """Print passages, tokens and sufficiency."""
    print_line(format_verdict(context), "green" if context.sufficient else "bold yellow")


def print_passages(context: "Context") -> None:
    """Print a table of the passages in their order: title or beginning, id, score, and whether each is verified."""
    columns = ("no", "passage", "id", "score", "verified")
    grid = table("", *columns, right=("no", "score"), fold=("passage", "id"))
    for number, each in enumerate(context.passages, start=1):
        grid.add_row(
            str(number),
            each.passage.title.translate(UNPRINTABLE) or format_beginning(each.passage.text),
            each.passage.id.translate(UNPRINTABLE),
            "" if each.score is None else f"{each.score:.2f}",
            "yes" if each.verified else "no",
            style=None if each.verified else "dim",
        )
    if context.passages:
        print_table(grid)


def print_trace(context: "Context", most: int | None = None) -> None:
    """Print the five phases and the candidates; at most `most` that were dropped for one reason."""
    print_table(_phase_table(context))
    print_table(_candidate_table(context, most))


def _phase_table(context: "Context") -> "Table":
    trace = context.trace
    title = f"phases: {trace.ms:.1f} ms, of which {trace.embed_ms:.1f} embedded the query ({trace.embedder})"
    grid = table(title, "phase", "ms", "in", "out", "settings", right=("ms", "in", "out"), fold=("settings",))
    for phase in trace.phases:
        decision = f"skipped: {phase.skipped}" if phase.skipped else _format_settings(phase.settings)
        counts = str(phase.received), str(phase.returned)
        grid.add_row(phase.name, f"{phase.ms:.1f}", *counts, decision, style="dim" if phase.skipped else None)
    return grid


def _candidate_table(context: "Context", most: int | None) -> "Table":
    """Return a table of each candidate's fate and its reason; narrow terminals leave tokens and fates out."""
    candidates = context.trace.candidates
    names = dict.fromkeys(name for candidate in candidates for name in candidate.scores)
    scores = sorted(names, key=lambda name: SCORES.index(name) if name in SCORES else len(SCORES))
    more = ["tokens", "fate"] if get_console().width >= NARROW_WIDTH else []
    grid = table(
        f"candidates: {len(candidates)}",
        *("rank", "id", "origin", *scores, *more, "reason"),
        right=("rank", "tokens", *scores),
        fold=("id", "reason"),
    )
    dropped = Counter[str]()
    for candidate in candidates:
        reason = candidate.reason.partition(":")[0]
        dropped[reason] += not candidate.rank
        if most is not None and dropped[reason] > most:
            continue
        fate = candidate.fate if candidate.rank else f"{candidate.fate} by {candidate.phase}"
        grid.add_row(
            str(candidate.rank or ""),
            candidate.id.translate(UNPRINTABLE),
            candidate.origin,
            *(f"{candidate.scores[name]:.3f}" if name in candidate.scores else "" for name in scores),
            *(["" if candidate.tokens is None else str(candidate.tokens), fate] if more else []),
            candidate.reason.translate(UNPRINTABLE),
            style="green" if candidate.verified and candidate.rank else "dim" if not candidate.rank else None,
        )
    for reason, count in dropped.items():
        if most is not None and count > most:
            grid.add_row("", f"… {count - most} more", *[""] * (1 + len(scores) + len(more)), reason, style="dim")
    return grid


def _format_settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_format_setting(value)}" for name, value in settings.items() if value is not None)


def _format_setting(value: object) -> object:
    if isinstance(value, Mapping):  # a calibration: by which method, on how many pairs
        return " ".join(str(value[key]) for key in ("method", "pairs") if value.get(key)) or "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
