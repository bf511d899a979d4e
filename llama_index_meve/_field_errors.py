"""What pydantic says of a field, in one sentence of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from meve.errors import ConfigurationError


@contextmanager
def told_plainly() -> Iterator[None]:
    """Around the making of a model.

    Raises:
        ConfigurationError: a field can't be; the message names it, its value and what it should be.
    """
    try:
        yield
    except ValidationError as cause:
        wrong = cause.errors(include_url=False)[0]
        name = ".".join(map(str, wrong["loc"]))
        should = wrong["msg"].replace("Input should", "it should", 1)
        raise ConfigurationError(f"{name} is {wrong['input']!r:.80}: {should}") from cause
