"""Translate metadata filters to conditions of PostgreSQL."""

import json
import math
from collections.abc import Sequence
from typing import Any

from meve.filters import Filter

_BOUNDS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

_AS_LIST = (
    "CASE jsonb_typeof(metadata -> ?::text) WHEN 'array' THEN metadata -> ?::text "
    "ELSE jsonb_build_array(metadata -> ?::text) END"
)
"""A value as a list, since only the strict mode of JSON paths leaves lists in lists alone."""

MOST_TESTS = 100
"""The most values for which the index of the metadata is asked one by one."""
EXACT, LARGEST = 2**53, 1 << 1023
"""Whole numbers up to the first are exact as floats; the second is the largest power of two that is a float."""

Condition = tuple[str, list[Any]]
"""SQL with `?` for each of the values."""


def make_condition(where: Filter | None) -> Condition:
    """Return a condition that holds for the metadata of those passages that a filter admits.

    It may hold for others with numbers beyond 2^53, where floats and decimals differ.

    >>> make_condition(Filter({"lang": "en"}))
    ('(metadata @> ?::jsonb OR metadata @> ?::jsonb)', ['{"lang": "en"}', '{"lang": ["en"]}'])
    """
    parts: list[str] = []
    values: list[Any] = []
    for name, wanted in where.conditions.items() if where is not None else ():
        for sql, more in _conditions_of(name, wanted):
            parts.append(sql)
            values += more
    return " AND ".join(parts) or "TRUE", values


def _conditions_of(name: str, wanted: dict[str, Any]) -> list[Condition]:
    if not is_storable(name):
        return [("FALSE", [])]
    conditions = [_translate(name, operator, operand) for operator, operand in wanted.items()]
    if not {"$eq", "$in", *_BOUNDS} & set(wanted):
        conditions.append(("jsonb_exists(metadata, ?::text)", [name]))
    return conditions


def _translate(name: str, operator: str, operand: Any) -> Condition:  # noqa: ANN401
    if operator in _BOUNDS:
        return _bound(name, operator, operand)
    is_excluding = operator in ("$ne", "$nin")
    accepted = [value for value in operand if is_storable(value)]
    large = [value for value in accepted if isinstance(value, int) and abs(value) > EXACT]
    if is_excluding:
        accepted = [value for value in accepted if value not in large]
    else:
        accepted += [float(value) for value in large if abs(value) < LARGEST]
    condition, values = _has_one(name, accepted)
    return f"{'NOT ' if is_excluding else ''}({condition})", values


def _has_one(name: str, accepted: Sequence[Any]) -> Condition:
    """Return a condition for metadata that have one of the values, alone or in a list."""
    if len(accepted) > MOST_TESTS:  # PostgreSQL hashes the values, and compares each passage's own only
        elements = f"SELECT FROM jsonb_array_elements({_AS_LIST}) AS held WHERE held = ANY(?::jsonb[])"
        has_name = "jsonb_exists(metadata, ?::text)"
        return f"{has_name} AND EXISTS ({elements})", [name] * 4 + [[json.dumps(value) for value in accepted]]
    tests = [json.dumps({name: held}) for value in accepted for held in (value, [value])]
    return " OR ".join(["metadata @> ?::jsonb"] * len(tests)) or "FALSE", tests


def _bound(name: str, operator: str, bound: float | str) -> Condition:
    kind = "string" if isinstance(bound, str) else "number"
    if not isinstance(bound, str) and EXACT < abs(bound) < LARGEST:
        operator, bound = _widen(operator, float(bound))
    test = f'strict $[*] ? (@.type() == "{kind}" && @ {_BOUNDS[operator]} $bound)'
    if isinstance(bound, float) and math.isinf(bound):
        if (bound > 0) is not operator.startswith("$lt"):
            return "FALSE", []
        test, bound = 'strict $[*] ? (@.type() == "number")', 0
    if not is_storable(bound):  # such a text is in no passage; the one without its last part has the same order
        return _bound(name, *_nearest_storable(operator, str(bound)))
    return f"jsonb_path_exists({_AS_LIST}, ?::jsonpath, ?::jsonb)", [name] * 3 + [test, json.dumps({"bound": bound})]


def _widen(operator: str, bound: float) -> tuple[str, float]:
    """Return a bound that a float on the right side of it keeps as a decimal too."""
    if operator.startswith("$gt"):
        return "$gte", math.nextafter(bound, -math.inf)
    return "$lte", math.nextafter(bound, math.inf)


def _nearest_storable(operator: str, bound: str) -> tuple[str, str]:
    """Return a bound that PostgreSQL can hold and that splits the texts that it can hold in the same way."""
    place = next(n for n in range(len(bound)) if not is_storable(bound[n]))
    start, is_low = bound[:place], bound[place] == "\0"
    if is_low:  # "a\0" comes right after "a"
        return {"$gt": "$gt", "$gte": "$gt", "$lt": "$lte", "$lte": "$lte"}[operator], start
    # between U+D7FF and U+E000, the neighbours of surrogates
    return {"$gt": "$gte", "$gte": "$gte", "$lt": "$lt", "$lte": "$lt"}[operator], f"{start}\ue000"


def is_storable(value: object) -> bool:
    """Return whether PostgreSQL can hold a plain value, as an id or in metadata."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str) or not ("\0" in value or any("\ud800" <= char <= "\udfff" for char in value))
