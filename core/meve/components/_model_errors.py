"""Maps the errors of loading a model by name: the model is missing, or present and unusable."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meve.errors import MeveError, ModelError, ModelNotFoundError

_NETWORK = ("httpx", "huggingface_hub", "requests", "urllib3")
"""Libraries whose errors mean that the hub is unreachable or lacks the model."""


@contextmanager
def map_load_errors(name: str, choices: str) -> Iterator[None]:
    """Map any error raised while a model is loaded.

    Args:
        name: the hub name or folder that the user gave.
        choices: the alternatives to name in the message.

    Raises:
        ModelNotFoundError: no such model on this machine or on the hub.
        ModelError: the model exists but can't be loaded.
    """
    try:
        yield
    except MeveError:
        raise
    except Exception as cause:
        what = f"{type(cause).__name__}: {str(cause).strip().splitlines()[0] if str(cause).strip() else 'no message'}"
        unreachable = isinstance(cause, OSError) or type(cause).__module__.startswith(_NETWORK)
        if unreachable and not Path(name).is_dir():
            raise ModelNotFoundError(f"model {name!r} not found ({what}): {choices}") from cause
        raise ModelError(f"loading the model {name!r} failed ({what}): {choices}") from cause
