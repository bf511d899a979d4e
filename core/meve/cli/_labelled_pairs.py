"""Labelled pairs from a JSONL file, with a warning for each invalid line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meve.cli._render import print_message
from meve.errors import CalibrationError, IngestError

if TYPE_CHECKING:
    from meve.types import LabelledPair

PairsFile = Annotated[
    Path, typer.Argument(metavar="PAIRS.jsonl", help='Rows {"query": …, "passage": …, "relevant": true or false}.')
]


def read_pairs(path: Path) -> "list[LabelledPair]":
    """Return a file's rows `{"query": …, "passage": …, "relevant": true}`, or with `"label": 1`; warn of other lines.

    Raises:
        IngestError: the file can't be read.
        CalibrationError: the file has no valid pair.
    """
    from meve.ingest import read_text  # here, since every command imports this module
    from meve.ingest._jsonl import load_object

    try:
        text = read_text(path).text
    except IngestError as error:
        raise IngestError(f"{path} can't be read: {error}") from error
    pairs, warnings = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                pairs.append(_pair(load_object(line)))
            except ValueError as cause:
                warnings.append(f"line {number}: {cause}")
    if not pairs:
        reason = f": {warnings[0]}" if warnings else ": the file is empty"
        raise CalibrationError(f'{path} has no pair{reason}; rows are {{"query": …, "passage": …, "relevant": …}}')
    for warning in warnings:
        print_message("warning", f"{path}: {warning}")
    return pairs


def _pair(row: dict[str, Any]) -> "LabelledPair":
    from meve.types import LabelledPair

    for key in ("query", "passage"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise ValueError(f"{key!r} must be text, got {row.get(key)!r:.40}")
    if "relevant" not in row and "label" not in row:
        raise ValueError("'relevant' or 'label' is missing: it must be true or false")
    key = "relevant" if "relevant" in row else "label"
    if row[key] not in (0, 1):
        raise ValueError(f"{key!r} must be true, false, 1 or 0, got {row[key]!r:.40}")
    return LabelledPair(query=row["query"], passage=row["passage"], relevant=bool(row[key]))
