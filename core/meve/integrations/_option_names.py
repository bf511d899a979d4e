"""Translate a framework's option names to MeVe's."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from meve.errors import ConfigurationError
from meve.pipeline.config import Overrides, RetrieverConfig, check_keywords, check_option_names

P = ParamSpec("P")
T = TypeVar("T")


def explain_unknown_options(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function; called with an unknown keyword, it names the nearest one and all that it takes.

    >>> explain_unknown_options(lambda limit: limit)(limt=3)
    Traceback (most recent call last):
    meve.errors.ConfigurationError: unknown option 'limt' of <lambda>: did you mean 'limit'? known: limit
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        check_keywords(function, kwargs)
        return function(*args, **kwargs)

    return checked


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
    check_option_names(translated, [*names, *Overrides.__annotations__])
    return translated


def check_wrapper_keywords(function: Callable[..., Any], model: type, fields: Mapping[str, Any]) -> None:
    """Check the keyword arguments of a function that passes them on to a wrapper's class, before it does any work.

    Args:
        function: its own parameters are valid, too.
        model: a pydantic class; its fields and all settings of `RetrieverConfig` are valid.
        fields: the given arguments.

    Raises:
        ConfigurationError: an unknown name.
    """
    check_keywords(function, fields, also=[*_field_names(model), *Overrides.__annotations__])


def collect_options(model: type, names: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a wrapper, with the settings among them that are no fields under `options`.

    Args:
        model: the wrapper's pydantic class, with a field `options`.
        names: the framework's option names, and MeVe's.
        fields: field names and names of settings, with their values.

    Raises:
        ConfigurationError: an unknown name, two names of the same option, or an invalid setting.
    """
    own = _field_names(model)
    check_option_names(fields, [*own, *Overrides.__annotations__], model.__name__)
    loose = {name: value for name, value in fields.items() if name not in own}
    options = {**(fields.get("options") or {}), **loose}
    check_option_names(options, [*Overrides.__annotations__], f"{model.__name__}.options")
    RetrieverConfig().override(**options)
    settings = [*names, *Overrides.__annotations__]
    given = {name: value for name, value in fields.items() if name in own and name in settings and value is not None}
    translate_options(names, {**given, **options})
    return {**{name: value for name, value in fields.items() if name in own}, "options": options}


def _field_names(model: type) -> list[str]:
    return [*model.model_fields]  # type: ignore[attr-defined]
