"""Copy metadata of framework objects safely."""

import copy
from collections.abc import Mapping
from datetime import date, time
from typing import Any

_IMMUTABLE = (str, int, float, type(None))


def json_metadata(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the metadata that JSON can hold, which filters can match; dates and times as ISO texts.

    >>> json_metadata({"on": date(2001, 5, 1), "other": object(), "tags": ["a", "b"], "score": float("nan")})
    {'on': '2001-05-01', 'tags': ['a', 'b']}
    """
    plain = {str(name): _write_times(value) for name, value in metadata.items()}
    return {name: value for name, value in plain.items() if _is_json(value)}


def _write_times(value: object) -> object:
    if isinstance(value, date | time):
        return value.isoformat()
    return [_write_times(each) for each in value] if isinstance(value, list | tuple) else value


def _is_json(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(each) for each in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _is_json(each) for name, each in value.items())
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return value is None or isinstance(value, str | int)


def copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy; values that can't be copied are shared."""
    copied = {}
    for name, value in metadata.items():
        if isinstance(value, _IMMUTABLE):
            copied[name] = value
            continue
        try:
            copied[name] = copy.deepcopy(value)
        except Exception:  # foreign objects may raise anything while they are copied
            copied[name] = value
    return copied
