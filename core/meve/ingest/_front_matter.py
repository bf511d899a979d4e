"""Reads metadata from the front matter of Markdown."""

import math
from datetime import date, datetime
from typing import Any

from meve._yaml_limits import parse_yaml
from meve.ingest._markup import read_front_matter

LONGEST = 4_000
"""The most characters of front matter that is read."""


def read_front_metadata(text: str) -> dict[str, Any]:
    """Return the plain values of a Markdown text's front matter by name; none if it isn't YAML.

    Plain are texts, finite numbers, integers of 64 bits, booleans, dates and times (as ISO texts), and lists of these.
    Other values, blank names, names that begin with `meve.`, and texts with NUL or single surrogates are left out. The
    title is kept, since a heading may stand in its place in the titles of passages. Front matter of more than 4,000
    characters isn't read, since each passage of the file gets a copy.
    """
    count = read_front_matter(text)[0]
    front = "\n".join(text.split("\n", count)[1 : count - 1]) if count else ""
    if not front or len(front) > LONGEST:
        return {}
    try:
        data = parse_yaml(front.encode())
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    read = {name: _to_plain(value) for name, value in data.items() if _is_name(name)}
    return {name: value for name, value in read.items() if value is not None}


def _is_name(name: object) -> bool:
    """Return whether metadata may have this name."""
    if not isinstance(name, str) or not name.strip() or not _is_storable(name):
        return False
    return not name.startswith("meve.")


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
