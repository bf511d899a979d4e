"""Reads passages from a JSONL file, one per line, and reports lines that are invalid."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from meve.types import Passage

TEXT_KEYS = ("text", "content")
"""Keys that may hold a row's text; the first one present is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The passages of a JSONL file."""

    passages: tuple[Passage, ...]
    complaints: tuple[str, ...]
    """For each line that was left out, its number and the reason."""


def read_rows(text: str, source: str) -> Rows:
    """Read passages from rows such as `{"text": …, "id": …, "title": …, "metadata": {…}}`; blank lines are skipped.

    `content` is accepted for `text`. A row without an id is named `source#line`. Other keys become metadata, as do
    `source`, `line` and `kind` unless the row sets them.

    >>> [p.id for p in read_rows('{"text": "Ice floats."}', "facts.jsonl").passages]
    ['facts.jsonl#1']
    """
    passages: list[Passage] = []
    complaints: list[str] = []
    split: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            passage = _passage(load_object(line), source, number)
            if passage.id in split:
                raise ValueError(f"the id {passage.id!r} is already used on an earlier line")
        except ValueError as cause:
            complaints.append(f"line {number}: {cause}")
            continue
        split.add(passage.id)
        passages.append(passage)
    return Rows(passages=tuple(passages), complaints=tuple(complaints))


def load_object(line: str) -> dict[str, Any]:
    """Load one JSON object.

    Raises:
        ValueError: the line isn't a JSON object; the message states why.
    """
    try:
        row = json.loads(line, parse_constant=_no_constant)
        json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as cause:
        raise ValueError("a lone surrogate, which is invalid in UTF-8") from cause
    except json.JSONDecodeError as cause:
        raise ValueError(f"not JSON: {cause.msg} at column {cause.colno}") from cause
    except RecursionError as cause:
        raise ValueError("nested too deeply") from cause
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    return row


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def _passage(row: Mapping[str, Any], source: str, number: int) -> Passage:
    key = next((key for key in TEXT_KEYS if key in row), None)
    if key is None:
        raise ValueError(f"neither 'text' nor 'content' among the keys ({', '.join(row) or 'none'})")
    text = row[key]
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{key!r} is {'blank' if isinstance(text, str) else type(text).__name__}: give it some text")
    extra = row.get("metadata") or {}
    if not isinstance(extra, dict):
        raise ValueError(f"'metadata' is {type(extra).__name__}: give an object")
    others = {name: value for name, value in row.items() if name not in {key, "id", "_id", "title", "metadata"}}
    return Passage(
        id=_id(row, source, number),
        text=text,
        title=_title(row),
        metadata={"source": source, "line": number, "kind": "jsonl", **others, **extra},
    )


def _id(row: Mapping[str, Any], source: str, number: int) -> str:
    given = row.get("id", row.get("_id"))
    if given is None:
        return f"{source}#{number}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ValueError(f"'id' is {given!r}: give some text or a whole number")
    return str(given)


def _title(row: Mapping[str, Any]) -> str:
    title = row.get("title")
    if title is None:
        return ""
    if not isinstance(title, str):
        raise ValueError(f"'title' is {type(title).__name__}: give text")
    return title.strip()
