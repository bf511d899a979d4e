"""Reads metadata from the front matter of Markdown."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from meve._yaml_limits import parse_yaml
from meve.ingest._markup import read_front_matter

LONGEST = 4_000
"""The most characters of front matter that is read."""
RESERVED = frozenset(("source", "start", "end", "chunk", "kind"))
"""Names of metadata that tell the place of a passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The front matter of a Markdown text."""

    lines: int
    """The number of its lines; 0 if there is none."""
    title: str
    """The title that begins the titles of passages; may be empty."""
    metadata: Mapping[str, Any]
    left_out: tuple[str, ...]
    """The names of values that aren't metadata."""
    is_text: bool
    """It is part of the text, since none of it is metadata."""


def read_front(text: str) -> FrontMatter:
    """Return a Markdown text's front matter, with its plain values as metadata; none if it isn't YAML.

    Plain are texts, finite numbers, integers of 64 bits, booleans, dates and times (as ISO texts), and lists of these.
    Other values, blank names, names in `RESERVED` or that begin with `meve.`, and texts with NUL or single surrogates
    are left out. The title is kept, since a heading may stand in its place in the titles of passages. Front matter of
    more than 4,000 characters isn't read, since each passage of the file gets a copy.
    """
    count, title = read_front_matter(text)
    front = "\n".join(text.split("\n", count)[1 : count - 1]) if count else ""
    data = _parse(front) if len(front) <= LONGEST else {}
    read = {name: _to_plain(value) for name, value in data.items() if _is_name(name)}
    metadata = {name: value for name, value in read.items() if value is not None}
    lost = [name for name, value in data.items() if name not in metadata and value is not None]
    names = (name if isinstance(name, str) and _is_storable(name) else "other names" for name in lost)
    left_out = tuple(dict.fromkeys(names))
    is_text = not metadata and any(map(str.isalnum, front))
    return FrontMatter(lines=count, title=title, metadata=metadata, left_out=left_out, is_text=is_text)


@lru_cache(maxsize=1)
def _parse(front: str) -> Mapping[Any, Any]:
    """Return the data of front matter; empty if it is no mapping."""
    try:
        data = parse_yaml(front.encode())
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _is_name(name: object) -> bool:
    """Return whether metadata may have this name."""
    if not isinstance(name, str) or not name.strip() or not _is_storable(name):
        return False
    return name not in RESERVED and not name.startswith("meve.")


def _is_storable(text: str) -> bool:
    """Return whether stores can hold a text: NUL and single surrogates, which escapes can write, they can't."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _to_plain(value: object) -> Any:  # noqa: ANN401 - what JSON holds
    """Return a plain value as JSON holds it; None for any other."""
    if isinstance(value, list):
        items = [None if isinstance(each, list) else _to_plain(each) for each in value]
        return None if None in items else items
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, str):
        return value if _is_storable(value) else None
    is_integer = isinstance(value, int) and -(2**63) <= value < 2**63
    return value if is_integer or (isinstance(value, float) and math.isfinite(value)) else None
