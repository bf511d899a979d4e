"""Compile the filter of a LangGraph search into a predicate; values that can't be compared don't match."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from meve.errors import ValidationError
from meve.memory.items.items import ValuePredicate


def compile_filter(filter: Mapping[str, Any] | None) -> ValuePredicate | None:
    """Return a predicate on an item's value; None for an empty filter.

    Raises:
        ValidationError: `filter` is no mapping, or has an unknown operator.

    >>> admits = compile_filter({"cups": {"$gt": 2}})
    >>> admits({"cups": 3}), admits({"cups": "many"}), admits({})
    (True, False, False)
    """
    if filter is None:
        return None
    if not isinstance(filter, Mapping):
        raise ValidationError(f"filter must map names to conditions, got {filter!r:.80}")
    for name, condition in filter.items():
        _check_condition(name, condition)
    if not filter:
        return None
    return lambda value: all(_satisfies(value.get(name), condition) for name, condition in filter.items())


def _check_condition(name: object, condition: object) -> None:
    if isinstance(condition, Mapping):
        operators = _has_operators(condition)
        for key, operand in condition.items():
            if operators and key not in _OPERATORS:
                raise ValidationError(
                    f"filter on {name!r:.40} must use one of {', '.join(sorted(_OPERATORS))}, got {key!r:.40}"
                )
            if key in ("$in", "$nin") and not isinstance(operand, list | tuple | set | frozenset):
                raise ValidationError(f"filter on {name!r:.40}: {key} needs a list of values, got {operand!r:.60}")
            if not operators:
                _check_condition(key, operand)


def _has_operators(condition: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in condition)


def _satisfies(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if _has_operators(condition):
            return all(_OPERATORS[key](value, operand) for key, operand in condition.items())
        return isinstance(value, Mapping) and all(_satisfies(value.get(key), each) for key, each in condition.items())
    if isinstance(condition, list | tuple):
        return isinstance(value, list) and len(value) == len(condition) and all(map(_satisfies, value, condition))
    return _json_equal(value, condition)


def _json_equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0, and True equals neither."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_json_equal(each, other[key]) for key, each in value.items())
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_json_equal, value, other))
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _ordered_comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Restrict a comparison to two numbers or two strings; anything else compares False."""

    def compare_ordered(value: Any, other: Any) -> bool:
        if isinstance(value, str) and isinstance(other, str):
            return compare(value, other)
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other))
        return numbers and compare(value, other)

    return compare_ordered


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": _json_equal,
    "$ne": lambda value, other: not _json_equal(value, other),
    "$gt": _ordered_comparison(operator.gt),
    "$gte": _ordered_comparison(operator.ge),
    "$lt": _ordered_comparison(operator.lt),
    "$lte": _ordered_comparison(operator.le),
    "$in": lambda value, others: any(_json_equal(value, each) for each in others),
    "$nin": lambda value, others: not any(_json_equal(value, each) for each in others),
}
