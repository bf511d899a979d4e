"""Translate pydantic's field errors into one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from meve.errors import ConfigurationError


@contextmanager
def translate_field_errors() -> Iterator[None]:
    """Raise pydantic's validation errors within the block as configuration errors.

    Raises:
        ConfigurationError: names the invalid field, its value and what is valid.
    """
    try:
        yield
    except ValidationError as cause:
        error = cause.errors(include_url=False)[0]
        field = ".".join(map(str, error["loc"]))
        rule = error["msg"].replace("Input should", "must", 1)
        raise ConfigurationError(f"{field} {rule}, got {error['input']!r:.80}") from cause
