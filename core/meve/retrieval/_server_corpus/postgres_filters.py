"""Translate metadata filters to conditions of PostgreSQL."""

import json
import math
from typing import Any

from meve.filters import Filter

_BOUNDS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

Condition = tuple[str, list[Any]]
"""SQL with `?` for each of the values."""


def make_condition(where: Filter | None) -> Condition:
    """Return the condition that holds for the metadata of exactly those passages that a filter admits.

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
    if not _is_storable(name):
        return [("FALSE", [])]
    conditions = [_translate(name, operator, operand) for operator, operand in wanted.items()]
    if not {"$eq", "$in", *_BOUNDS} & set(wanted):
        conditions.append(("jsonb_exists(metadata, ?::text)", [name]))
    return conditions


def _translate(name: str, operator: str, operand: Any) -> Condition:  # noqa: ANN401
    if operator in _BOUNDS:
        return _bound(name, operator, operand)
    accepted = [value for value in operand if _is_storable(value)]
    tests = [json.dumps({name: held}) for value in accepted for held in (value, [value])]  # alone, or in a list
    condition = " OR ".join(["metadata @> ?::jsonb"] * len(tests)) or "FALSE"
    return f"{'NOT ' if operator in ('$ne', '$nin') else ''}({condition})", tests


def _bound(name: str, operator: str, bound: float | str) -> Condition:
    kind = "string" if isinstance(bound, str) else "number"
    test = f'$[*] ? (@.type() == "{kind}" && @ {_BOUNDS[operator]} $bound)'
    if isinstance(bound, float) and math.isinf(bound):
        if (bound > 0) is not operator.startswith("$lt"):
            return "FALSE", []
        test, bound = '$[*] ? (@.type() == "number")', 0
    if not _is_storable(bound):  # such a text is in no passage; the one without its last part has the same order
        return _bound(name, *_nearest_storable(operator, str(bound)))
    values = [name, test, json.dumps({"bound": bound})]
    return "jsonb_path_exists(metadata -> ?::text, ?::jsonpath, ?::jsonb)", values


def _nearest_storable(operator: str, bound: str) -> tuple[str, str]:
    """Return a bound that PostgreSQL can hold and that splits the texts that it can hold in the same way."""
    place = next(n for n in range(len(bound)) if not _is_storable(bound[n]))
    start, is_low = bound[:place], bound[place] == "\0"
    if is_low:  # "a\0" comes right after "a"
        return {"$gt": "$gt", "$gte": "$gt", "$lt": "$lte", "$lte": "$lte"}[operator], start
    # between U+D7FF and U+E000, the neighbours of surrogates
    return {"$gt": "$gte", "$gte": "$gte", "$lt": "$lt", "$lte": "$lt"}[operator], f"{start}\ue000"


def _is_storable(value: object) -> bool:
    """Return whether a passage's metadata in PostgreSQL can hold a plain value."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str) or not ("\0" in value or any("\ud800" <= char <= "\udfff" for char in value))
