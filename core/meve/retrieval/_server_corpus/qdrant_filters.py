"""Translate metadata filters to those of Qdrant, over fields that are made from the metadata for it.

Qdrant compares no numbers with texts of digits, orders no texts, and needs an index for each field. So a point has
three fields beside its metadata: `names`; `values`, each with its name, as `Filter` compares them; and `bounds`,
numbers that order numbers and dates. The translated filter never excludes what the filter admits; the little that it
admits beyond that is removed afterwards.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from qdrant_client import models

from meve.filters import Filter

NAMES, VALUES, BOUNDS = "names", "values", "bounds"
LONGEST_VALUE = 200
"""Characters of a value that is kept as it is."""
LARGEST = 1.7e308
DATE_LENGTH = 10
"""So many characters of a text count for its order: those of a date."""
_EXACT = " -./0123456789:T"
"""The characters that order exactly; others come between them."""


def make_fields(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a passage that filters use."""
    values: list[str] = []
    bounds: dict[str, list[float]] = {}
    for name, value in metadata.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, str | int | float | None):
                values.append(value_key(name, each))
            if is_ordered(each):
                bounds.setdefault(bound_key(name, each), []).append(to_number(each))
            elif isinstance(each, str):
                values.append(_unordered_key(name))
    return {NAMES: sorted(metadata), VALUES: sorted(set(values)), BOUNDS: bounds}


def make_filter(where: Filter | None) -> models.Filter | None:
    """Return a filter of Qdrant that admits at least what a filter admits."""
    if where is None:
        return None
    must: list[models.Condition] = []
    must_not: list[models.Condition] = []
    for name, wanted in where.conditions.items():
        must.append(_match(NAMES, [name]))
        for operator, operand in wanted.items():
            if operator in ("$eq", "$in"):
                must.append(_match(VALUES, [value_key(name, value) for value in operand]))
            elif operator in ("$ne", "$nin"):
                must_not.append(_match(VALUES, [value_key(name, value) for value in operand]))
            else:
                must.append(_bound(name, operator, operand))
    return models.Filter(must=must, must_not=must_not)


def bound_fields(fields: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the paths of the numbers that order values, each once."""
    yield from sorted({f"{BOUNDS}.{key}" for each in fields for key in each[BOUNDS]})


def value_key(name: str, value: object) -> str:
    """Return a name and a plain value as one text; equal numbers are equal texts."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps(value)
    if len(text) > LONGEST_VALUE:
        text = f"#{blake2b(text.encode(), digest_size=16).hexdigest()}"
    return f"{name}={text}"


def is_ordered(value: object) -> bool:
    """Return whether a value has a number among the bounds: a number, or a text that begins with a digit."""
    if isinstance(value, str):
        return value[:1].isascii() and value[:1].isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)


def bound_key(name: str, value: object) -> str:
    """Return the key of a name's numbers, or of its texts."""
    kind = "t" if isinstance(value, str) else "n"
    return f"{kind}{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def to_number(value: str | float) -> float:
    """Return a number that is never larger for a smaller value.

    >>> to_number("2024-05-01") < to_number("2024-05-02") == to_number("2024-05-02T12:00") < to_number("3")
    True
    """
    if not isinstance(value, str):
        return float(max(-LARGEST, min(LARGEST, value)))
    number, is_exact = 0, True
    for place in range(DATE_LENGTH):
        code = 0
        if is_exact and place < len(value):
            below = sum(each < value[place] for each in _EXACT)
            is_exact = value[place] in _EXACT
            code = 2 * below + (2 if is_exact else 1)  # odd codes are those of characters in between
        number = number * (2 * len(_EXACT) + 2) + code
    return float(number)


def _unordered_key(name: str) -> str:
    return f"{name}~"


def _match(key: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=values))


def _bound(name: str, operator: str, bound: str | float) -> models.Condition:
    """Return the condition of a bound. The bound itself is always inside: distinct values may have one number."""
    number = to_number(bound)
    limits = models.Range(gte=number) if operator.startswith("$gt") else models.Range(lte=number)
    ordered = models.FieldCondition(key=f"{BOUNDS}.{bound_key(name, bound)}", range=limits)
    if not isinstance(bound, str):
        return ordered
    return models.Filter(should=[ordered, _match(VALUES, [_unordered_key(name)])])
