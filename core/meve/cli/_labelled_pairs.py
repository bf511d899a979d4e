"""Labelled pairs from a JSONL file, and a complaint for each line that is none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meve.errors import CalibrationError, IngestError
from meve.ingest import read_text
from meve.ingest._jsonl import load_object
from meve.types import LabelledPair


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsFile:
    """What a file of pairs held."""

    pairs: tuple[LabelledPair, ...]
    complaints: tuple[str, ...]
    """Of each line that was left out: its number, and why."""


def read_pairs(path: Path) -> PairsFile:
    """Rows `{"query": …, "passage": …, "relevant": true}`; `"label": 1` does for `relevant`.

    Raises:
        IngestError: the file can't be read.
        CalibrationError: no line of it is a pair.
    """
    try:
        text = read_text(path).text
    except IngestError as error:
        raise IngestError(f"{path} can't be read: {error}") from error
    pairs, complaints = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                pairs.append(_pair(load_object(line)))
            except ValueError as cause:
                complaints.append(f"line {number}: {cause}")
    if not pairs:
        why = f": {complaints[0]}" if complaints else " (it is empty)"
        raise CalibrationError(
            f'no line of {path} is a pair{why}; rows are {{"query": …, "passage": …, "relevant": …}}'
        )
    return PairsFile(pairs=tuple(pairs), complaints=tuple(complaints))


def _pair(row: dict[str, Any]) -> LabelledPair:
    for key in ("query", "passage"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise ValueError(f"{key!r} is {row.get(key)!r:.40}: give text")
    if "relevant" not in row and "label" not in row:
        raise ValueError("neither 'relevant' nor 'label' is given: give true or false")
    key = "relevant" if "relevant" in row else "label"
    if row[key] not in (0, 1):
        raise ValueError(f"{key!r} is {row[key]!r:.40}: give true or false, or 1 or 0")
    return LabelledPair(query=row["query"], passage=row["passage"], relevant=bool(row[key]))
