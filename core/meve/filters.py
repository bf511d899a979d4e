"""Which passages a metadata filter lets through: those that have what it asks for, and no others."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from meve.errors import ConfigurationError


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
        try:
            self._wanted = {name: _accepted(value) for name, value in where.items()}
            plain = {name: sorted(map(json.dumps, accepted)) for name, accepted in self._wanted.items()}
            self.key = json.dumps(plain, sort_keys=True)
        except (TypeError, AttributeError) as cause:
            raise ConfigurationError(
                f"the filter {where!r:.200} can't be used: give names with a value, or a list of accepted values"
            ) from cause

    def admits(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this metadata may be found."""
        return all(name in metadata and _any(metadata[name], wanted) for name, wanted in self._wanted.items())


def _accepted(value: object) -> frozenset[Any]:
    return frozenset(value) if isinstance(value, list | tuple | set | frozenset) else frozenset([value])


def _any(value: object, accepted: frozenset[Any]) -> bool:
    values: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return any(_in(v, accepted) for v in values)


def _in(value: object, accepted: frozenset[Any]) -> bool:
    try:
        return value in accepted
    except TypeError:  # a dict, say: nothing that a filter can name
        return False
