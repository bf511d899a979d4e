"""Match the metadata of passages against a filter."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from meve.errors import ConfigurationError, wrap_errors

Where: TypeAlias = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
"""Required metadata: names with a value or a list of accepted values; or a predicate over the metadata."""


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
    """Names with a value or a list of accepted values. Metadata that is a list matches by any of its values.

    Raises:
        ConfigurationError: a filter of another shape.

    >>> Filter({"lang": ["en", "de"]}).matches({"lang": "en", "year": 2020})
    True
    >>> Filter({"lang": "en", "year": 2021}).matches({"lang": "en"})
    False
    """

    def __init__(self, where: Mapping[str, Any]) -> None:
        self._wanted: dict[str, frozenset[str]] = {}
        if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
            raise _invalid(where)
        try:
            for name, value in where.items():
                values = value if isinstance(value, list | tuple | set | frozenset) else [value]
                self._wanted[name] = frozenset(_canonical(each) for each in values)
        except TypeError as cause:
            raise _invalid(where) from cause
        self.key = json.dumps({name: sorted(wanted) for name, wanted in self._wanted.items()}, sort_keys=True)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a passage with this metadata may be retrieved."""
        return all(name in metadata and _has_any(metadata[name], wanted) for name, wanted in self._wanted.items())


def _invalid(where: object) -> ConfigurationError:
    return ConfigurationError(
        f"the filter must map names to a value or to a list of accepted values, got {where!r:.200}"
    )


def _canonical(value: object) -> str:
    # so that 1 equals 1.0, but not True
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{value!r} is no plain value")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def _has_any(value: object, wanted: frozenset[str]) -> bool:
    values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, str | int | float | None) and _canonical(each) in wanted for each in values)
