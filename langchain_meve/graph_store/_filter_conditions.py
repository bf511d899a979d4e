"""What a search asks of values, and a listing of namespaces. Values that can't be compared don't match."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.store.base import MatchCondition

from meve.errors import ValidationError
from meve.memory.items.item import Namespace
from meve.memory.items.items import Where


def where(filter: Mapping[str, Any] | None) -> Where | None:
    """What a filter asks, as a question to one value; None for a filter that asks nothing.

    Raises:
        ValidationError: no mapping, or an operator that isn't known.

    >>> asks = where({"cups": {"$gt": 2}})
    >>> asks({"cups": 3}), asks({"cups": "many"}), asks({})
    (True, False, False)
    """
    if filter is None:
        return None
    if not isinstance(filter, Mapping):
        raise ValidationError(f"the filter is {filter!r:.80}: give a mapping from names to what is asked of them")
    for name, asked in filter.items():
        _check(name, asked)
    return (lambda value: all(_holds(value.get(name), asked) for name, asked in filter.items())) if filter else None


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins, or ends, as a condition says; `*` in it stands for any one label.

    Raises:
        ValidationError: another kind of condition.
    """
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValidationError(f"match_type is {condition.match_type!r:.40}: give 'prefix' or 'suffix'")
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(asked in ("*", label) for asked, label in zip(path, part, strict=True))


def _check(name: object, asked: object) -> None:
    if isinstance(asked, Mapping):
        operators = _operated(asked)
        for key, operand in asked.items():
            if operators and key not in _OPERATORS:
                raise ValidationError(
                    f"the filter asks {key!r:.40} of {name!r:.40}: known are {', '.join(sorted(_OPERATORS))}"
                )
            if key in ("$in", "$nin") and not isinstance(operand, list | tuple | set | frozenset):
                raise ValidationError(f"the filter asks {key} {operand!r:.60} of {name!r:.40}: give a list of values")
            if not operators:
                _check(key, operand)


def _operated(asked: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in asked)


def _holds(value: Any, asked: Any) -> bool:
    if isinstance(asked, Mapping):
        if _operated(asked):
            return all(_OPERATORS[key](value, operand) for key, operand in asked.items())
        return isinstance(value, Mapping) and all(_holds(value.get(key), each) for key, each in asked.items())
    if isinstance(asked, list | tuple):
        return isinstance(value, list) and len(value) == len(asked) and all(map(_holds, value, asked))
    return _same(value, asked)


def _same(value: Any, other: Any) -> bool:
    """Whether two plain values are equal, as in JSON: 1 is 1.0, and True is neither."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_same(each, other[key]) for key, each in value.items())
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Of two numbers, or two texts; nothing else has an order."""

    def compared(value: Any, other: Any) -> bool:
        if isinstance(value, str) and isinstance(other, str):
            return compare(value, other)
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other))
        return numbers and compare(value, other)

    return compared


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": _same,
    "$ne": lambda value, other: not _same(value, other),
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
    "$in": lambda value, others: any(_same(value, each) for each in others),
    "$nin": lambda value, others: not any(_same(value, each) for each in others),
}
