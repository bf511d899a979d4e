"""Rows of a set's JSONL files, with errors that name the file, line and field."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from meve.errors import DatasetError
from meve.ingest._jsonl import load_object

_T = TypeVar("_T")

_NOUNS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An object of a JSONL file with its place; each method raises a `DatasetError` that names place and field."""

    file: Path
    line: int
    values: Mapping[str, Any]
    inside: str = ""
    """The path within the line, such as `evidence[0].`; empty for the whole line."""

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.file} line {self.line}"

    def error(self, complaint: str) -> DatasetError:
        """Return an error about the row."""
        return DatasetError(f"{self.place}: {complaint}")

    def field_error(self, name: str, complaint: str) -> DatasetError:
        """Return an error about a field of the row."""
        return self.error(f"the field {self.inside + name!r} {complaint}")

    def text(self, name: str, *, blank: bool = False) -> str:
        """Return a text field, which may only be blank if `blank` is true."""
        text = self._value(name, str)
        if not blank and not text.strip():
            raise self.field_error(name, "is blank: it must be a text")
        return text

    def flag(self, name: str) -> bool:
        """Return a boolean field."""
        return self._value(name, bool)

    def number(self, name: str, least: int) -> int:
        """Return a whole number of at least `least`."""
        number = self._value(name, int)
        if number < least:
            raise self.field_error(name, f"must be at least {least}, got {number}")
        return number

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, none of them blank."""
        texts = self._values(name, str)
        for at, text in enumerate(texts):
            if not text.strip():
                raise self.field_error(f"{name}[{at}]", "is blank: it must be a text")
        return texts

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        return self._values(name, int)

    def rows(self, name: str) -> tuple["Row", ...]:
        """Return a list of objects."""
        return tuple(
            Row(file=self.file, line=self.line, values=values, inside=f"{self.inside}{name}[{at}].")
            for at, values in enumerate(self._values(name, dict))
        )

    def _value(self, name: str, kind: type[_T]) -> _T:
        if name not in self.values:
            raise self.field_error(name, f"is missing: it must be {_NOUNS[kind]}")
        return self._check_kind(name, self.values[name], kind)

    def _values(self, name: str, kind: type[_T]) -> tuple[_T, ...]:
        values: list[object] = self._value(name, list)
        return tuple(self._check_kind(f"{name}[{at}]", value, kind) for at, value in enumerate(values))

    def _check_kind(self, name: str, value: object, kind: type[_T]) -> _T:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            text = json.dumps(value, ensure_ascii=False)
            shown = text if len(text) <= 80 else f"{text[:80]}…"
            raise self.field_error(name, f"must be {_NOUNS[kind]}, got {shown}")
        return value


def read_rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a `.jsonl` or `.jsonl.gz` file; blank lines are skipped.

    Raises:
        DatasetError: the file is absent, unreadable, truncated or empty, or has a line that is no JSON object.
    """
    is_empty = True
    for number, line in _lines(file):
        if not line.strip():
            continue
        is_empty = False
        try:
            values = load_object(line.decode("utf-8"))
        except UnicodeDecodeError as cause:
            raise DatasetError(f"{file} line {number}: not UTF-8 at byte {cause.start} of the line") from cause
        except ValueError as cause:
            raise DatasetError(f"{file} line {number}: {cause}; if the file is truncated, get it again") from cause
        yield Row(file=file, line=number, values=values)
    if is_empty:
        raise DatasetError(f"{file} has no rows: get it again")


def index_rows(rows: Iterable[Row], name: str = "id") -> dict[str, Row]:
    """Return rows by a field, in their order.

    Raises:
        DatasetError: the field is missing, no text, or equal in two rows.
    """
    by_id: dict[str, Row] = {}
    for row in rows:
        key = row.text(name)
        if key in by_id:
            raise row.error(f"the {name} {key!r} is also in {by_id[key].place}")
        by_id[key] = row
    return by_id


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                yield number, line
    except EOFError as cause:
        raise DatasetError(f"{file} line {number + 1}: the gzip stream is truncated; get the file again") from cause
    except (gzip.BadGzipFile, zlib.error) as cause:
        raise DatasetError(f"{file} line {number + 1}: no gzip, or damaged ({cause}); get the file again") from cause
    except FileNotFoundError as cause:
        raise _absent(file) from cause
    except OSError as cause:
        raise DatasetError(f"{file} can't be read: {(cause.strerror or str(cause)).lower()}") from cause


def _absent(file: Path) -> DatasetError:
    if file.parent.is_dir():
        return DatasetError(f"{file.parent} has no file {file.name}: get it, or name another folder with --data DIR")
    return DatasetError(f"there is no folder {file.parent}: name the folder with all sets with --data DIR")
