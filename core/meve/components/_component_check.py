"""Checks an object that is given as a component."""

from typing import TypeVar

from meve.errors import ConfigurationError

T = TypeVar("T")


def check_component(component: T, role: str, port: type) -> T:
    """Return an object after checking that it has the attributes of an interface in `meve.ports`.

    Raises:
        ConfigurationError: a class, or an object that lacks an attribute.
    """
    missing = [name for name in vars(port) if not name.startswith("_") and not hasattr(component, name)]
    if missing or isinstance(component, type):
        lack = "is a class, not an object" if isinstance(component, type) else f"lacks {', '.join(missing)}"
        raise ConfigurationError(f"{role} {component!r:.80} {lack}: see meve.ports.{port.__name__}, or give a name")
    return component
