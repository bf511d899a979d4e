"""Translate a framework's option names to MeVe's."""

from collections.abc import Mapping
from typing import Any

from meve.errors import ConfigurationError
from meve.pipeline.config import check_option_names


def merge_options(names: Mapping[str, str], *options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options that aren't None under MeVe's names; later ones win.

    >>> merge_options({"k": "limit"}, {"k": 3, "threshold": None}, {"k": 5})
    {'limit': 5}
    """
    merged: dict[str, Any] = {}
    for each in options:
        merged |= {names.get(name, name): value for name, value in each.items() if value is not None}
    return merged


def translate_options(names: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call under MeVe's names, None included.

    Raises:
        ConfigurationError: an unknown name, or two names of the same option.

    >>> translate_options({"k": "limit"}, {"k": 3})
    {'limit': 3}
    """
    translated: dict[str, Any] = {}
    for name, value in options.items():
        target = names.get(name, name)
        if target in translated:
            same = [given for given in options if names.get(given, given) == target]
            raise ConfigurationError(f"{' and '.join(same)} are the same option: give only one of them")
        translated[target] = value
    check_option_names(translated)
    return translated
