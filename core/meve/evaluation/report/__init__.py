"""Reports: Markdown with tables and plots, beside the same numbers as JSON."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from meve.evaluation.experiments.memory.memory_results import MemoryResults
from meve.evaluation.report import markdown, plots
from meve.evaluation.results import Results

RESULTS, REPORT = "results.json", "report.md"
_AnyResults = TypeVar("_AnyResults", Results, MemoryResults)


def write_report(
    draw: Callable[[_AnyResults, Path], list[Path]],
    format_report: Callable[[_AnyResults, str, Sequence[Path]], str],
    results: _AnyResults,
    folder: Path,
    command: str,
) -> Path:
    """Write `results.json`, `report.md` and its pictures; return the report's file.

    Args:
        draw: draws the pictures in a folder.
        format_report: returns the report's text.
        results: the results of a run.
        folder: the folder for the files.
        command: the command that repeats the run, for the report.

    Raises:
        MissingExtraError: matplotlib isn't installed; `results.json` is written nevertheless.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results.save(folder / RESULTS)
    pictures = draw(results, folder)
    file = folder / REPORT
    file.write_text(format_report(results, command, pictures), encoding="utf-8")
    return file


write = partial(write_report, plots.draw, markdown.format_report)
"""Writes the report of an experiment on retrieval."""
