"""Which passages a metadata filter lets through: those that have what it asks for, and no others."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from meve.errors import ConfigurationError, wrap_errors

Where: TypeAlias = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
"""What metadata must have: names with a value, or with a list of accepted ones; or a function that says so."""


def check_where(where: object) -> None:
    """Refuse what is no filter.

    Raises:
        ConfigurationError: neither a mapping that can be used nor a function.
    """
    if where is not None and not callable(where):
        Filter(where)  # type: ignore[arg-type]


def call_filter(admits: Callable[[Mapping[str, Any]], bool], metadata: Mapping[str, Any]) -> bool:
    """Whether somebody's own function lets a passage through.

    Raises:
        ConfigurationError: it raised.
    """
    with wrap_errors(ConfigurationError, f"asking the filter {admits!r:.80}"):
        return bool(admits(metadata))


class Filter:
    """Names with a value, or with a list of accepted values. A metadata value that is a list matches by any of its own.

    Raises:
        ConfigurationError: another shape; a filter is never ignored.

    >>> Filter({"lang": ["en", "de"]}).admits({"lang": "en", "year": 2020})
    True
    >>> Filter({"lang": "en", "year": 2021}).admits({"lang": "en"})
    False
    """

    def __init__(self, where: Mapping[str, Any]) -> None:
        self._wanted: dict[str, frozenset[str]] = {}
        if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
            raise _refused(where)
        try:
            for name, value in where.items():
                values = value if isinstance(value, list | tuple | set | frozenset) else [value]
                self._wanted[name] = frozenset(_plain(each) for each in values)
        except TypeError as cause:
            raise _refused(where) from cause
        self.key = json.dumps({name: sorted(wanted) for name, wanted in self._wanted.items()}, sort_keys=True)

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this metadata may be found."""
        return all(name in metadata and _any(metadata[name], wanted) for name, wanted in self._wanted.items())


def _refused(where: object) -> ConfigurationError:
    return ConfigurationError(
        f"the filter {where!r:.200} can't be used: give a mapping from names to a value, or to a list of accepted ones"
    )


def _plain(value: object) -> str:
    """A text, number, truth value or None, so that 1 and 1.0 are one, and 1 and True are two."""
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{value!r} is no plain value")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def _any(value: object, wanted: frozenset[str]) -> bool:
    values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, str | int | float | None) and _plain(each) in wanted for each in values)
