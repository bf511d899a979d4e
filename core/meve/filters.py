"""Match the metadata of passages against a filter."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from meve.errors import ConfigurationError, show, wrap_errors

Where: TypeAlias = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
"""Required metadata: names with a value, a list of accepted values, or operators with their values such as
`{"$gte": 2000, "$lt": 2010}`; or a predicate over the metadata."""

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
"""The operators that compare with a number or a text."""
OPERATORS = ("$eq", "$ne", "$in", "$nin", *ORDERS)
"""The operators of a filter."""


def check_where(where: object) -> None:
    """Check that a filter is None, a function or a valid mapping.

    Raises:
        ConfigurationError: anything else.
    """
    if where is not None and not callable(where):
        Filter(where)  # type: ignore[arg-type]


def call_filter(predicate: Callable[[Mapping[str, Any]], bool], metadata: Mapping[str, Any]) -> bool:
    """Return whether a filter function admits a passage.

    Raises:
        ConfigurationError: the function raised.
    """
    with wrap_errors(ConfigurationError, f"calling the filter {predicate!r:.80}"):
        return bool(predicate(metadata))


class Filter:
    """Names with a value, a list of accepted values, or operators that must all hold.

    `$eq` and `$in` take accepted values, `$ne` and `$nin` excluded ones, and `$gt`, `$gte`, `$lt` and `$lte` a bound.
    Numbers are compared with numbers and text with text, so that dates such as `2024-05-01` have an order; a value of
    another type never matches a bound. Metadata that is a list matches by any of its values, and is excluded by any of
    them. A passage without the name never matches, not even `$ne`.

    Raises:
        ConfigurationError: a filter of another shape, or an unknown operator.

    >>> Filter({"lang": ["en", "de"]}).matches({"lang": "en", "year": 2020})
    True
    >>> Filter({"lang": "en", "year": 2021}).matches({"lang": "en"})
    False
    >>> Filter({"year": {"$gte": 2000, "$lt": 2010}}).matches({"year": 2010})
    False
    """

    def __init__(self, where: Mapping[str, Any]) -> None:
        if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
            raise _invalid(where)
        self._wanted: dict[str, dict[str, Any]] = {}
        try:
            for name, value in where.items():
                operators = value if isinstance(value, Mapping) else {"$in": _as_list(value)}
                self._wanted[name] = {each: _check_operand(name, each, operators[each]) for each in operators}
        except TypeError as cause:
            raise _invalid(where) from cause
        plain = {
            name: {each: sorted(value) if isinstance(value, frozenset) else value for each, value in wanted.items()}
            for name, wanted in self._wanted.items()
        }
        self.key = json.dumps(plain, sort_keys=True)

    @property
    def conditions(self) -> dict[str, dict[str, Any]]:
        """The operators of each name with their operands, to translate the filter to another language.

        `$eq`, `$in`, `$ne` and `$nin` have lists of plain values, the others a number or a text. A name must be there
        even if it has no operators.

        >>> Filter({"lang": "en", "year": {"$gte": 2000}}).conditions
        {'lang': {'$in': ['en']}, 'year': {'$gte': 2000}}
        """
        return {
            name: {
                each: sorted(map(json.loads, value), key=repr) if isinstance(value, frozenset) else value
                for each, value in wanted.items()
            }
            for name, wanted in self._wanted.items()
        }

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a passage with this metadata may be retrieved."""
        return all(
            name in metadata and all(_holds(each, wanted[each], metadata[name]) for each in wanted)
            for name, wanted in self._wanted.items()
        )


def _check_operand(name: str, operator: str, value: object) -> Any:  # noqa: ANN401
    """Return an operator's value as `_holds` takes it.

    Raises:
        ConfigurationError: an unknown operator, or a bound that is neither number nor text.
        TypeError: an accepted value that isn't plain.
    """
    if operator not in OPERATORS:
        raise ConfigurationError(f"the filter of {name!r} must use {', '.join(OPERATORS)}, got {operator!r:.40}")
    if operator not in ORDERS:
        is_list = operator in ("$in", "$nin")
        if is_list and not isinstance(value, list | tuple | set | frozenset):
            raise ConfigurationError(f"{operator} of {name!r} must be a list of values, got {value!r:.80}")
        return frozenset(_canonical(each) for each in (_as_list(value) if is_list else [value]))
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool) and value == value):
        return value
    raise ConfigurationError(f"{operator} of {name!r} must be a number or text, got {show(value, 80)}")


def _holds(operator: str, wanted: Any, value: object) -> bool:  # noqa: ANN401
    values: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    if operator in ORDERS:
        return any(_is_comparable(each, wanted) and ORDERS[operator](each, wanted) for each in values)
    return _has_any(values, wanted) is not (operator in ("$ne", "$nin"))


def _is_comparable(value: object, bound: object) -> bool:
    kind = str if isinstance(bound, str) else Real
    return isinstance(value, kind) and not isinstance(value, bool)


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def _invalid(where: object) -> ConfigurationError:
    return ConfigurationError(
        "the filter must map names to a value, to a list of accepted values, or to operators such as "
        f'{{"$gte": 2000}}, got {show(where, 200)}'
    )


def _canonical(value: object) -> str:
    # so that 1 equals 1.0, but not True
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{value!r} is no plain value")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def _has_any(values: Iterable[Any], wanted: frozenset[str]) -> bool:
    return any(isinstance(each, str | int | float | None) and _canonical(each) in wanted for each in values)
