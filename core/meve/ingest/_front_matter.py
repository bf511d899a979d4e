"""Reads metadata from the front matter of Markdown."""

import math
from datetime import date, datetime
from typing import Any

from meve._yaml_limits import parse_yaml
from meve.ingest._markup import read_front_matter

LONGEST = 4_000
"""The most characters of front matter that is read."""
TITLE = "title"
"""The key that becomes the title of the passages, and isn't metadata."""


def read_front_metadata(text: str) -> dict[str, Any]:
    """Return the plain values of a Markdown text's front matter by name; none if it isn't YAML.

    Plain are texts, finite numbers, booleans, dates and times (as ISO texts), and lists of these. Other values, the
    title, and names that begin with `meve.` are left out. Front matter of more than 4,000 characters isn't read,
    since each passage of the file gets a copy.
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
    read = {name: _to_plain(value) for name, value in data.items() if isinstance(name, str)}
    return {n: value for n, value in read.items() if value is not None and n != TITLE and not n.startswith("meve.")}


def _to_plain(value: object) -> Any:  # noqa: ANN401 - what JSON holds
    """Return a plain value as JSON holds it; None for any other."""
    if isinstance(value, list):
        items = [None if isinstance(each, list) else _to_plain(each) for each in value]
        return None if None in items else items
    if isinstance(value, date | datetime):
        return value.isoformat()
    is_plain = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else None
