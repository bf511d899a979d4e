"""The tables that `meve bench` prints, and the comparison with earlier results."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from meve.cli._render import format_count, get_console, print_line, print_message, print_table, table
from meve.errors import EvaluationError

if TYPE_CHECKING:
    from meve.evaluation._comparison import MeasureChange
    from meve.evaluation.experiments.memory.memory_results import MemoryResults
    from meve.evaluation.results import Failure, Results

IMPORTANT_COLUMNS = ("supporting recall", "tokens", "supporting precision", "p50 ms", "all gold")
"""The columns that a narrow terminal keeps longest; the report has all."""

MAX_FAILURES = 10
"""The most failures that are printed; the report names the first of each system."""


def print_memory_results(results: "MemoryResults") -> None:
    """Print a table for each experiment."""
    from meve.evaluation.report.memory_report import tabulate_figures

    for name in results.experiments:
        head, rows = tabulate_figures(results.of(name))
        grid = table(name, *head, right=head[1:], fold=head)
        for row in rows:
            grid.add_row(*row)
        print_table(grid)


def print_results(results: "Results") -> None:
    """Print the main measures, one row per system; only as many columns as fit."""
    from meve.evaluation.report.markdown import MAIN, format_value, short_name

    for name in results.sets:
        tokens = {s: results.value(name, s, "tokens") for s in results.systems(name)}
        most = results.sets[name]["questions"]
        rows = {s: short_name(s) + (f" (of {n.n})" if n and n.n < most else "") for s, n in tokens.items()}
        measured = [m for m in MAIN if any(results.value(name, s, m) for s in rows)]
        columns = _fitting_columns(measured, max(map(len, rows.values())), get_console().width)
        title = f"{name}: {format_count(most, 'question', 'questions')}"
        grid = table(title, "system", *columns, right=columns)
        for system, label in rows.items():
            values = [results.value(name, system, m) for m in columns]
            cells = ["" if v is None else format_value(m, v.value) for m, v in zip(columns, values, strict=True)]
            grid.add_row(label, *cells)
        print_table(grid)


def print_failures(results: "Results") -> None:
    """Print some failures as warnings, the first of each system before the others."""
    for failure in islice(_first_of_each(results), MAX_FAILURES):
        print_message("warning", f"{failure.set}, {failure.system}, question {failure.question}: {failure.error}")
    if results.failures:
        print_message("warning", f"{len(results.failures)} questions raised; each counts as an empty prompt")


def _first_of_each(results: "Results") -> Iterator["Failure"]:
    seen: dict[tuple[str, str], Failure] = {}
    rest = [f for f in results.failures if seen.setdefault((f.set, f.system), f) is not f]
    yield from (*seen.values(), *rest)


def _fitting_columns(columns: Sequence[str], label_width: int, width: int) -> list[str]:
    kept: list[str] = []
    room = width - label_width - 1
    order = {column: rank for rank, column in enumerate(IMPORTANT_COLUMNS)}
    for column in sorted(columns, key=lambda c: order.get(c, len(order))):
        if len(column) + 1 <= room:
            kept.append(column)
            room -= len(column) + 1
    return [column for column in columns if column in kept]


def print_changes(old: "Results", new: "Results") -> None:
    """Print what changed beyond chance.

    Raises:
        EvaluationError: something is worse than it was.
    """
    from meve.evaluation._comparison import changed_settings, find_changes

    settings = changed_settings(old, new)
    if settings:
        print_message("warning", f"the two runs differ in their settings: {', '.join(settings)}")
    changes = find_changes(old, new)
    if not changes:
        print_line("no change beyond the intervals")
        return
    columns = ("set", "system", "measure", "old", "new", "change")
    grid = table("changes beyond the intervals", *columns, right=("old", "new"))
    for change in changes:
        grid.add_row(*_change_row(change))
    print_table(grid)
    drops = [c for c in changes if c.is_drop]
    if drops:
        raise EvaluationError(f"{len(drops)} of {len(changes)} measures changed for the worse: see the table")


def _change_row(change: "MeasureChange") -> tuple[str, ...]:
    from meve.evaluation._comparison import ALL_MEASURES
    from meve.evaluation.report.markdown import format_value

    if change.measure == ALL_MEASURES:
        return change.set, change.system, change.measure, "", "", change.kind
    old, low, high = (format_value(change.measure, value) for value in (change.old, change.low, change.high))
    new = "" if change.new is None else format_value(change.measure, change.new)
    return change.set, change.system, change.measure, old, new, f"{change.kind} [{low}, {high}]"
