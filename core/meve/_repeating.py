"""Repeats a write transaction that the database rolled back for another one's sake."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from meve.errors import StoreBusyError

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 4
_ROLLED_BACK = ("40001", "40P01")
"""PostgreSQL's codes of a serialization failure and of a deadlock: nothing of the transaction is left."""


def repeat_rolled_back(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function again if the database rolled its transaction back because of a deadlock or the like.

    The function must have one write transaction, and no effect outside of it. Iterators among its arguments are read
    before the first try. A writer that waited too long for a lock isn't tried again.
    """

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        given = [_read(each) for each in arguments]
        named = {name: _read(each) for name, each in options.items()}
        for left in reversed(range(TRIES)):
            try:
                return function(*given, **named)  # type: ignore[arg-type]
            except StoreBusyError as error:
                if not left or getattr(error.__cause__, "sqlstate", None) not in _ROLLED_BACK:
                    raise
        raise AssertionError

    return call


def _read(argument: object) -> object:
    return tuple(argument) if isinstance(argument, Iterator) else argument
