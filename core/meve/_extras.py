"""Is what an optional part is made of installed? Asked before any work is done, so that all that is missing is named.

A floor of its own, since commands, parts and test suites ask.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

from meve.errors import missing_extras

Needs: TypeAlias = Mapping[str, str]
"""Importable names of packages, each with the extra that installs it."""


def require(purpose: str, *needs: Needs) -> None:
    """Refuse to begin what couldn't be ended.

    Args:
        purpose: what they are for, as the message names it.
        needs: what it needs; of a package that is there twice, the extra that is named first.

    Raises:
        MissingExtraError: something isn't installed; the message names all of it, and one pip line.

    >>> require("arithmetic", {"numpy": "numbers"})
    >>> require("magic", {"wand": "tricks", "numpy": "numbers"}, {"top_hat": "tricks", "rabbit": "animals"})
    Traceback (most recent call last):
    meve.errors.MissingExtraError: magic needs 'wand', 'top_hat' and 'rabbit', which aren't installed: \
pip install 'meve[tricks,animals]'
    """
    missing = missing_packages(*needs)
    if missing:
        raise missing_extras(missing, purpose)


@contextmanager
def require_imports(purpose: str, needs: Needs) -> Iterator[None]:
    """Around imports that can't wait: one that fails becomes an error that names all that isn't installed.

    Raises:
        MissingExtraError: instead of an ImportError, where something that is needed isn't installed.
    """
    try:
        yield
    except ImportError as cause:
        missing = missing_packages(needs)
        if not missing:
            raise
        raise missing_extras(missing, purpose) from cause


def missing_packages(*needs: Needs) -> dict[str, str]:
    """Of what is needed, what isn't installed."""
    wanted = {package: extra for each in reversed(needs) for package, extra in each.items()}
    in_order = dict.fromkeys(package for each in needs for package in each)
    return {package: wanted[package] for package in in_order if not _installed(package)}


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it would be a part of
        return False
