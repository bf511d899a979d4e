"""Limits of JSON data from outside: its nesting."""

import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

NESTING = 64
"""The most levels of lists and mappings within each other."""
METADATA_NESTING = NESTING - 1
"""The most levels of a passage's metadata, which a saved index holds within a JSON object."""


def is_nested_deeper(value: object, levels: int, parts: float = math.inf) -> bool:
    """Return whether lists and mappings stand in each other more than `levels` deep; a value that holds itself does.

    Also return True if they hold more than `parts` values in all, each counted as often as it stands there.

    >>> is_nested_deeper({"a": [1]}, 2), is_nested_deeper({"a": [[1]]}, 2), is_nested_deeper(1, 0)
    (False, True, False)
    """
    layer: list[Any] = [value]
    for _ in range(levels + 1):
        nested = {kind for kind in set(map(type, layer)) if issubclass(kind, Mapping | list | tuple)}
        if not nested:
            return False
        layer = [each for each in layer if type(each) in nested]
        parts -= sum(map(len, layer))
        if parts < 0:
            return True
        layer = list(chain.from_iterable(each if isinstance(each, list | tuple) else each.values() for each in layer))
    return True


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - JSON has any type
    """Return JSON data of at most `NESTING` levels.

    Raises:
        ValueError: no JSON, or nested deeper.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        value = None
    else:
        if not is_nested_deeper(value, NESTING):
            return value
    raise ValueError(f"lists and mappings must be nested at most {NESTING} deep")
