"""Reports: Markdown with tables and plots, beside the same numbers as JSON."""

from pathlib import Path

from meve.evaluation.report import markdown, plots
from meve.evaluation.results import Results

RESULTS, REPORT = "results.json", "report.md"


def write(results: Results, folder: Path, command: str) -> Path:
    """Write `results.json`, `report.md` and its pictures; return the report's file.

    Args:
        results: the results of a run.
        folder: an existing folder.
        command: the command that repeats the run, for the report.

    Raises:
        MissingExtraError: matplotlib isn't installed; `results.json` is written nevertheless.
    """
    results.save(folder / RESULTS)
    file = folder / REPORT
    pictures = plots.draw(results, folder)
    file.write_text(markdown.format_report(results, command, pictures), encoding="utf-8")
    return file
