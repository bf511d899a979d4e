"""A field that is calculated when it is first read."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LazyField(Generic[T]):
    """Decorates a method without arguments: its result becomes an attribute of that name.

    `functools.cached_property` of Python 3.11 holds a lock meanwhile, which a forked process could find held for ever.
    """

    def __init__(self, calculate: Callable[[Any], T]) -> None:
        self._calculate = calculate
        self.__doc__ = calculate.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Note the name of the attribute."""
        self._name = name

    def __get__(self, instance: object, owner: type) -> T:
        """Calculate the field; from then on, Python reads the attribute without asking here."""
        value = instance.__dict__[self._name] = self._calculate(instance)
        return value
