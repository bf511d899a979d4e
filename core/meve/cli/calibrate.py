"""`meve calibrate`: fits a verifier's probabilities to labelled pairs."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from meve.cli._labelled_pairs import PairsFile, read_pairs
from meve.cli._render import print_line, print_message, print_table, progress_bar, table
from meve.cli._requirements import require_for_calibrate
from meve.errors import StorageError

if TYPE_CHECKING:
    from meve.calibration.fitting import CalibrationReport

CALIBRATION_FILE = "calibration.json"
"""The file in a cross-encoder's folder with its calibration."""


def calibrate_command(
    pairs: PairsFile,
    index: Annotated[Path | None, typer.Option(help="Calibrate the verdicts of this index.", metavar="DIR")] = None,
    verifier: Annotated[
        str | None, typer.Option(help="Without an index: a cross-encoder, or 'cosine'.", metavar="NAME")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help=f"Without an index: the file for the calibration; by default {CALIBRATION_FILE} in the verifier's "
            "folder, which is loaded with the model.",
            metavar="FILE",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="The kind of curve to fit; isotonic is for 1,000 pairs or more.", metavar="platt|isotonic"),
    ] = "platt",
    target_recall: Annotated[
        float | None, typer.Option(help="Choose the threshold that keeps this share of the relevant passages.")
    ] = None,
    target_precision: Annotated[
        float | None, typer.Option(help="Choose the threshold at which this share of the kept passages is relevant.")
    ] = None,
) -> None:
    """Fit probabilities to labelled pairs.

    Also chooses a threshold, and saves both in the index or a file. With the verifier that ships, the
    verdict of its score, keyword score and, by MiniLM's vectors, cosine together is calibrated.
    """
    if (index is None) == (verifier is None and to is None):
        raise typer.BadParameter("give either --index DIR or --verifier NAME")
    if index is None:
        to = _output_file(verifier, to)
    require_for_calibrate(index, verifier)
    from meve.retrieval.retriever import Retriever

    labelled = read_pairs(pairs)
    with progress_bar() as advance:
        options: dict[str, Any] = {"pairs": labelled, "method": method}
        options |= {"precision": target_precision, "recall": target_recall}
        options["progress"] = partial(advance, "scoring pairs")
        if index is not None:
            retriever = Retriever.load(index)
            report = retriever.calibrate(**options)
            retriever.save(index)
        else:
            report = _calibrate_file(cast("Path", to), str(verifier), **options)
    print_calibration(report)
    print_line(f"saved: {index or to}")


def _output_file(verifier: str | None, to: Path | None) -> Path:
    if verifier is None:
        raise typer.BadParameter("--to FILE needs --verifier NAME")
    if to is not None:
        return to
    if verifier != "cosine" and Path(verifier).is_dir():
        return Path(verifier) / CALIBRATION_FILE
    raise typer.BadParameter(f"{verifier} is no folder where the calibration could be saved: give --to FILE too")


def _calibrate_file(path: Path, verifier: str, **options: Any) -> "CalibrationReport":  # noqa: ANN401 - of `calibrate`
    from meve.calibration.fitting import calibrate
    from meve.components.verifiers import load_verifier

    model = load_verifier(verifier)
    report = calibrate(model, **options)
    data = {"verifier": model.name, "threshold": report.threshold, "calibration": report.calibration.to_dict()}
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as cause:
        raise StorageError(f"the calibration can't be written to {path}: {cause}; name another file") from cause
    return report


def print_calibration(report: "CalibrationReport") -> None:
    """Print the threshold, and the calibration error before and after."""
    grid = table(
        f"calibration on {report.pairs} pairs, {report.relevant} of them relevant", "measure", "value", right=("value",)
    )
    grid.add_row("threshold", f"{report.threshold:.4f}")
    grid.add_row("precision at the threshold", f"{report.precision:.4f}")
    grid.add_row("recall at the threshold", f"{report.recall:.4f}")
    grid.add_row("calibration error before", f"{report.error_before:.4f}")
    grid.add_row("calibration error after", f"{report.error_after:.4f}")
    grid.add_row("AUC (not changed by calibration)", f"{report.auc:.4f}")
    print_table(grid)
    for warning in report.warnings:
        print_message("warning", warning)
    if not report.error_after < report.error_before:
        print_message("warning", "on held-out pairs it is no better than the old calibration: label more pairs")
