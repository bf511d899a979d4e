"""What integrations have in common: names that load when they are asked for, options, metadata."""

import copy
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from meve.errors import ConfigurationError, missing_extra
from meve.pipeline.config import check_option_names

NO_RESULT_MESSAGE = "Nothing that was found answers this. Say so rather than guess."
"""What a tool tells a model where nothing qualifies."""
TOOL_DESCRIPTION = "Searches the documents and returns only passages that were verified to answer the question."
"""What a model is told of the tool."""
_IMMUTABLE = (str, int, float, type(None))


def lazy_exports(package: str, where: Mapping[str, str], *, needs: str, extra: str) -> Callable[[str], Any]:
    """A package's `__getattr__`, which loads a name's module when it is first asked for.

    Args:
        package: the package's name.
        where: the module of each public name.
        needs: the framework that the package is for, by its importable name.
        extra: which of MeVe's extras installs it.

    Returns:
        A function that raises AttributeError for an unknown name, and MissingExtraError where the framework isn't
        installed.
    """

    def load(name: str) -> Any:  # noqa: ANN401
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(where))}")
        try:
            return getattr(import_module(f"{package}.{where[name]}"), name)
        except ModuleNotFoundError as cause:
            if (cause.name or "").partition(".")[0] != needs.partition(".")[0]:
                raise
            raise missing_extra(needs, extra, name) from cause

    return load


def merge_options(names: Mapping[str, str], *given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by MeVe's names, of those that are set; the later given wins.

    >>> merge_options({"k": "limit"}, {"k": 3, "threshold": None}, {"k": 5})
    {'limit': 5}
    """
    made: dict[str, Any] = {}
    for options in given:
        made |= {names.get(name, name): value for name, value in options.items() if value is not None}
    return made


def translate_options(names: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was given, by MeVe's names; None included.

    Raises:
        ConfigurationError: a name that means nothing, or two that mean the same.

    >>> translate_options({"k": "limit"}, {"k": 3})
    {'limit': 3}
    """
    made: dict[str, Any] = {}
    for name, value in options.items():
        mine = names.get(name, name)
        if mine in made:
            raise ConfigurationError(f"{name} is given beside {mine}, which says the same: give one of them")
        made[mine] = value
    check_option_names(made)
    return made


def json_metadata(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Of metadata, what JSON can hold: what filters go by.

    >>> json_metadata({"year": 2001, "when": object(), "tags": ["a", "b"], "score": float("nan")})
    {'year': 2001, 'tags': ['a', 'b']}
    """
    return {str(name): value for name, value in metadata.items() if _plain(value)}


def _plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(each) for each in value)
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _plain(each) for name, each in value.items())
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    return value is None or isinstance(value, str | int)


def copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing with the original but what can't be copied."""
    made = {}
    for name, value in metadata.items():
        if isinstance(value, _IMMUTABLE):
            made[name] = value
            continue
        try:
            made[name] = copy.deepcopy(value)
        except Exception:  # whatever somebody's object does when it's copied
            made[name] = value
    return made
