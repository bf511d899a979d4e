"""Passes operations and measurements to the recorder that `meve.telemetry.instrument` sets; without one, to nobody."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Value: TypeAlias = str | bool | int | float
"""The value of an attribute: never a text, an id or a user, unless the recorder's `has_content` says so."""


class Span(Protocol):
    """One operation that is going on."""

    def describe(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""


class Recorder(Protocol):
    """Records operations and measurements."""

    @property
    def has_content(self) -> bool:
        """Whether to record queries, and ids and scores of results."""

    def span(self, name: str, attributes: Mapping[str, Value]) -> AbstractContextManager[Span]:
        """Record an operation with its duration, and the type of its error."""

    def count(self, name: str, number: int, attributes: Mapping[str, Value]) -> None:
        """Add to a counter."""

    def measure(self, name: str, value: float, attributes: Mapping[str, Value]) -> None:
        """Record a duration in seconds, or set a gauge."""


_recorder: Recorder | None = None
_OFF: AbstractContextManager[None] = nullcontext()
_NONE: Mapping[str, Value] = MappingProxyType({})


def set_recorder(recorder: Recorder | None) -> None:
    """Report to a recorder from now on; None for nobody."""
    global _recorder
    _recorder = recorder


def get_recorder() -> Recorder | None:
    """Return the recorder; None if nobody measures."""
    return _recorder


def span(name: str, attributes: Mapping[str, Value] = _NONE) -> AbstractContextManager[Span | None]:
    """Report an operation; the block gets None if nobody measures."""
    return _OFF if _recorder is None else _recorder.span(name, attributes)


def count(name: str, attributes: Mapping[str, Value], number: int = 1) -> None:
    """Report that something happened."""
    if _recorder is not None:
        _recorder.count(name, number, attributes)


def measure(name: str, value: float, attributes: Mapping[str, Value] = _NONE) -> None:
    """Report a measurement."""
    if _recorder is not None:
        _recorder.measure(name, value, attributes)


def reported(
    name: str, describe: Callable[[Any, bool], Mapping[str, Value]]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that reports each call of a function as an operation.

    Args:
        name: the operation's name.
        describe: returns attributes for a result, and whether content is wanted.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            recorder = _recorder
            if recorder is None:
                return function(*arguments, **options)
            with recorder.span(name, {}) as span:
                result = function(*arguments, **options)
                span.describe(describe(result, recorder.has_content))
                return result

        return call

    return decorate
