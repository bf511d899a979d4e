"""What to say when a named model can't be loaded: whether it isn't there, or is there and broken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meve.errors import MeveError, ModelError, ModelNotFoundError

_NETWORK = ("httpx", "huggingface_hub", "requests", "urllib3")
"""Libraries whose errors mean that a hub didn't answer, or doesn't have it."""


@contextmanager
def loading(name: str, choices: str) -> Iterator[None]:
    """Map whatever loading a model raises.

    Args:
        name: the hub name or folder that the user gave.
        choices: what else the user can do, for the message.

    Raises:
        ModelNotFoundError: no model of that name is in reach.
        ModelError: it is there, but can't be loaded.
    """
    try:
        yield
    except MeveError:
        raise
    except Exception as cause:
        what = f"{type(cause).__name__}: {str(cause).strip().splitlines()[0] if str(cause).strip() else 'no message'}"
        unreachable = isinstance(cause, OSError) or type(cause).__module__.startswith(_NETWORK)
        if unreachable and not Path(name).is_dir():
            raise ModelNotFoundError(f"no model {name!r} in reach ({what}): {choices}") from cause
        raise ModelError(f"loading the model {name!r} failed ({what}): {choices}") from cause
