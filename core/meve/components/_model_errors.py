"""Finds models on this machine, and maps the errors of loading one: it is missing, or present and unusable."""

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


def find_cached_folder(name: str, owner: str = "") -> str:
    """Return the folder of a model on this machine: the one named, or the local copy of a hub model.

    Asks no hub: with `local_files_only`, the libraries that load models still send requests of their own.

    Args:
        name: the hub name or folder.
        owner: put before a hub name that names no owner.

    Raises:
        FileNotFoundError: it isn't on this machine.
    """
    if Path(name).is_dir():
        return name
    return str(find_cached_file(name if "/" in name else owner + name, "modules.json", "config.json").parent)


def find_cached_file(name: str, *files: str) -> Path:
    """Return the local copy of the first of these files that a hub model has on this machine, without asking a hub.

    Raises:
        FileNotFoundError: there is none.
    """
    from huggingface_hub import try_to_load_from_cache

    for file in files:
        path = try_to_load_from_cache(name, file)
        if isinstance(path, str):
            return Path(path)
    raise FileNotFoundError(f"it isn't on this machine, and you didn't name it: to download it, name {name!r} yourself")
