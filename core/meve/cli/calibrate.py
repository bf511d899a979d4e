"""`meve calibrate`: make a verifier's probabilities true on pairs of your own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from meve.cli._labelled_pairs import read_pairs
from meve.cli._render import complain, progress_bar, say, show_table, table
from meve.cli._requirements import calibrate_needs
from meve.errors import StorageError

if TYPE_CHECKING:
    from meve.calibration.fitting import CalibrationReport
    from meve.cli._labelled_pairs import PairsFile
    from meve.cli._render import Advance

Method = Literal["platt", "isotonic"]

BESIDE = "calibration.json"
"""Beside a model's own files: what a cross-encoder reads its calibration from."""


def calibrate(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS.jsonl", help='Rows {"query": …, "passage": …, "relevant": true or false}.')
    ],
    index: Annotated[
        Path | None, typer.Option("--index", help="The index whose verifier to calibrate.", metavar="DIR")
    ] = None,
    verifier: Annotated[
        str | None, typer.Option("--verifier", help="Without an index: a cross-encoder, or 'cosine'.", metavar="NAME")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help=f"Without an index: where to write the calibration; else {BESIDE} in the verifier's own folder, where "
            "it is read with the model.",
            metavar="FILE",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="Isotonic wants 1,000 pairs or more.", metavar="platt|isotonic")
    ] = "platt",
    target_recall: Annotated[
        float | None, typer.Option(help="Choose the threshold that keeps this share of relevant passages.")
    ] = None,
    target_precision: Annotated[
        float | None, typer.Option(help="Choose the threshold at which this share of the kept are relevant.")
    ] = None,
) -> None:
    """Fit a verifier to labelled pairs of your own.

    Chooses a threshold too, and saves both into the index or a file.
    """
    if (index is None) == (verifier is None and to is None):
        raise typer.BadParameter("give either --index DIR, or --verifier NAME")
    if index is None:
        to = _file(verifier, to)
    calibrate_needs(index, verifier)
    listed = read_pairs(pairs)
    for complaint in listed.complaints:
        complain("warning", f"{pairs}: {complaint}")
    chosen = cast("Method", method)
    with progress_bar() as advance:
        if index is not None:
            report = _into_index(index, listed, chosen, target_precision, target_recall, advance)
        else:
            report = _into_file(
                cast("Path", to), str(verifier), listed, chosen, target_precision, target_recall, advance
            )
    show_calibration(report)
    say(f"saved: {index or to}")


def _file(verifier: str | None, to: Path | None) -> Path:
    if verifier is None:
        raise typer.BadParameter("--to FILE goes with --verifier NAME")
    if to is not None:
        return to
    if verifier != "cosine" and Path(verifier).is_dir():
        return Path(verifier) / BESIDE
    raise typer.BadParameter(f"{verifier} is no folder to save beside the model in: give --to FILE as well")


def _into_index(
    path: Path, listed: "PairsFile", method: Method, precision: float | None, recall: float | None, advance: "Advance"
) -> "CalibrationReport":
    from meve.retrieval.retriever import Retriever

    retriever = Retriever.load(path)
    report = retriever.calibrate(
        listed.pairs,
        method=method,
        precision=precision,
        recall=recall,
        progress=lambda done, total: advance("scoring pairs", done, total),
    )
    retriever.save(path)
    return report


def _into_file(
    path: Path,
    verifier: str,
    listed: "PairsFile",
    method: Method,
    precision: float | None,
    recall: float | None,
    advance: "Advance",
) -> "CalibrationReport":
    import os

    from meve.calibration import fitting
    from meve.components.verifiers import load_verifier

    judge = load_verifier(verifier)
    report = fitting.calibrate(
        judge,
        listed.pairs,
        method=method,
        precision=precision,
        recall=recall,
        progress=lambda done, total: advance("scoring pairs", done, total),
    )
    data = {"verifier": judge.name, "threshold": report.threshold, "calibration": report.calibration.to_dict()}
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        os.replace(fresh, path)
    except OSError as cause:
        raise StorageError(f"the calibration can't be written to {path}: {cause}; name a file that can be") from cause
    return report


def show_calibration(report: "CalibrationReport") -> None:
    """Print how good the probabilities are now, and where the threshold lies."""
    made = table(f"calibration on {report.pairs} pairs", "measure", "value", right=("value",))
    rows = {
        "threshold": report.threshold,
        "precision at the threshold": report.precision,
        "recall at the threshold": report.recall,
        "calibration error before": report.error_before,
        "calibration error after": report.error_after,
        "AUC (which no calibration changes)": report.auc,
    }
    for name, value in rows.items():
        made.add_row(name, f"{value:.4f}")
    show_table(made)
    if not report.error_after < report.error_before:
        complain("warning", "on pairs kept out of the fit it is no better than the old one: label more pairs")
