"""Rows of JSON out of a set's files. Whatever is wrong with one is said with its file, line and field."""

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
    """An object of a JSONL file, with its place. Each method raises a `DatasetError` that names place and field."""

    file: Path
    line: int
    values: Mapping[str, Any]
    inside: str = ""
    """Where in its line it lies, such as `evidence[0].`; nothing for the whole line."""

    @property
    def place(self) -> str:
        """File and line, for a message."""
        return f"{self.file} line {self.line}"

    def error(self, complaint: str) -> DatasetError:
        """The error that says what is wrong with this row."""
        return DatasetError(f"{self.place}: {complaint}")

    def wrong(self, name: str, complaint: str) -> DatasetError:
        """The error that says what is wrong with a field of it."""
        return self.error(f"the field {self.inside + name!r} {complaint}")

    def text(self, name: str, *, blank: bool = False) -> str:
        """A text; one without letters only where `blank` allows it."""
        text = self._value(name, str)
        if not blank and not text.strip():
            raise self.wrong(name, "is blank: a text is wanted")
        return text

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._value(name, bool)

    def number(self, name: str, least: int) -> int:
        """A whole number that is at least `least`."""
        number = self._value(name, int)
        if number < least:
            raise self.wrong(name, f"holds {number}: at least {least} is wanted")
        return number

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, none of them blank."""
        texts = self._values(name, str)
        for at, text in enumerate(texts):
            if not text.strip():
                raise self.wrong(f"{name}[{at}]", "is blank: a text is wanted")
        return texts

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return self._values(name, int)

    def rows(self, name: str) -> tuple["Row", ...]:
        """A list of objects."""
        return tuple(
            Row(file=self.file, line=self.line, values=values, inside=f"{self.inside}{name}[{at}].")
            for at, values in enumerate(self._values(name, dict))
        )

    def _value(self, name: str, kind: type[_T]) -> _T:
        if name not in self.values:
            raise self.wrong(name, f"is missing: {_NOUNS[kind]} is wanted")
        return self._checked(name, self.values[name], kind)

    def _values(self, name: str, kind: type[_T]) -> tuple[_T, ...]:
        values: list[object] = self._value(name, list)
        return tuple(self._checked(f"{name}[{at}]", value, kind) for at, value in enumerate(values))

    def _checked(self, name: str, value: object, kind: type[_T]) -> _T:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            found = json.dumps(value, ensure_ascii=False)
            shown = found if len(found) <= 80 else f"{found[:80]}…"
            raise self.wrong(name, f"holds {shown}: {_NOUNS[kind]} is wanted")
        return value


def read(file: Path) -> Iterator[Row]:
    """The rows of a `.jsonl` or `.jsonl.gz` file, one after the other; blank lines are passed over.

    Raises:
        DatasetError: the file is absent, can't be read, is cut short, holds a line that is no JSON object, or holds
            none at all.
    """
    found = False
    for number, line in _lines(file):
        if not line.strip():
            continue
        found = True
        try:
            values = load_object(line.decode("utf-8"))
        except UnicodeDecodeError as cause:
            raise DatasetError(f"{file} line {number}: not UTF-8 at byte {cause.start} of the line") from cause
        except ValueError as cause:
            raise DatasetError(f"{file} line {number}: {cause}; a file that was cut short must be had anew") from cause
        yield Row(file=file, line=number, values=values)
    if not found:
        raise DatasetError(f"{file} holds no rows: it must be had anew")


def unique(rows: Iterable[Row], name: str = "id") -> dict[str, Row]:
    """Rows by a field of their own, in their order.

    Raises:
        DatasetError: two have the same; or it is missing, or no text.
    """
    by_id: dict[str, Row] = {}
    for row in rows:
        key = row.text(name)
        if key in by_id:
            raise row.error(f"the {name} {key!r} stands in {by_id[key].place} too")
        by_id[key] = row
    return by_id


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                yield number, line
    except EOFError as cause:
        raise DatasetError(f"{file} line {number + 1}: cut short: its gzip stream has no end; get it anew") from cause
    except (gzip.BadGzipFile, zlib.error) as cause:
        raise DatasetError(f"{file} line {number + 1}: no gzip, or damaged ({cause}); get it anew") from cause
    except FileNotFoundError as cause:
        raise _absent(file) from cause
    except OSError as cause:
        raise DatasetError(f"{file} can't be read: {(cause.strerror or str(cause)).lower()}") from cause


def _absent(file: Path) -> DatasetError:
    if file.parent.is_dir():
        return DatasetError(f"there is no {file.name} in {file.parent}: get it, or give another folder with --data DIR")
    return DatasetError(f"there is no folder {file.parent}: give the folder that holds the sets with --data DIR")
