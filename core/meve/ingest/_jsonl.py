"""Reads passages from a JSONL file, one per line, and reports lines that are invalid."""

import json
from collections.abc import Mapping
from typing import Any

from meve._json_limits import METADATA_NESTING, is_nested_deeper
from meve.types import Passage

TEXT_KEYS = ("text", "content")
"""Keys that may hold a row's text; the first one present is used."""


def read_jsonl_passages(text: str, source: str) -> tuple[list[Passage], list[str]]:
    """Read passages from rows such as `{"text": …, "id": …, "title": …, "metadata": {…}}`; blank lines are skipped.

    `content` is accepted for `text`. A row without an id is named `source#line`. Other keys become metadata, as do
    `source`, `line` and `kind` unless the row sets them.

    Returns:
        The passages, and the number of each invalid line with the reason.

    >>> passages, complaints = read_jsonl_passages('{"text": "Ice floats."}', "facts.jsonl")
    >>> [passage.id for passage in passages], complaints
    (['facts.jsonl#1'], [])
    """
    passages: dict[str, Passage] = {}
    complaints: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            passage = _read_row(load_object(line), source, number)
            if passage.id in passages:
                raise ValueError(f"the id {passage.id!r} is already used on an earlier line")
            passages[passage.id] = passage
        except ValueError as cause:
            complaints.append(f"line {number}: {cause}")
    return list(passages.values()), complaints


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


def _read_row(row: Mapping[str, Any], source: str, number: int) -> Passage:
    key = next((key for key in TEXT_KEYS if key in row), None)
    if key is None:
        raise ValueError(f"neither 'text' nor 'content' among the keys ({', '.join(row) or 'none'})")
    text = row[key]
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{key!r} is {'blank' if isinstance(text, str) else type(text).__name__}: give it some text")
    extra = {} if row.get("metadata") is None else row["metadata"]
    if not isinstance(extra, dict):
        raise ValueError(f"'metadata' is {type(extra).__name__}: give an object")
    others = {name: value for name, value in row.items() if name not in {key, "id", _id_key(row), "title", "metadata"}}
    metadata = {"source": source, "line": number, "kind": "jsonl", **others, **extra}
    if is_nested_deeper(metadata, METADATA_NESTING):
        raise ValueError(f"metadata must be nested at most {METADATA_NESTING} levels deep")
    return Passage(id=_read_id(row, source, number), text=text, title=_read_title(row), metadata=metadata)


def _read_id(row: Mapping[str, Any], source: str, number: int) -> str:
    given = row.get(_id_key(row))
    if given is None:
        return f"{source}#{number}"
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise ValueError(f"'id' is {given!r}: give some text or a whole number")
    return str(given)


def _id_key(row: Mapping[str, Any]) -> str:
    return "id" if row.get("id") is not None or "_id" not in row else "_id"


def _read_title(row: Mapping[str, Any]) -> str:
    title = "" if row.get("title") is None else row["title"]
    if not isinstance(title, str):
        raise ValueError(f"'title' must be text, got {type(title).__name__}")
    return title.strip()
