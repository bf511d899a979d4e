"""Reports for reading: Markdown with tables and plots, beside the same numbers as JSON."""

from pathlib import Path

from meve.evaluation.report import markdown, plots
from meve.evaluation.results import Results

RESULTS, REPORT = "results.json", "report.md"


def write(results: Results, folder: Path, command: str) -> Path:
    """Write `results.json`, `report.md` and its pictures.

    Args:
        results: of a run.
        folder: where to; it's there already.
        command: what makes it again, to stand in the report.

    Returns:
        The report's file.

    Raises:
        MissingExtraError: matplotlib isn't installed; the numbers are written all the same.
    """
    results.save(folder / RESULTS)
    file = folder / REPORT
    pictures = plots.draw(results, folder)
    file.write_text(markdown.text(results, command, pictures), encoding="utf-8")
    return file
