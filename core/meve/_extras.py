"""Check which optional packages are installed, and name the extras that install them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

from meve.errors import missing_extras

Needs: TypeAlias = Mapping[str, str]
"""Import names of packages, each with the extra that installs it."""


def require(purpose: str, *needs: Needs) -> None:
    """Check that all needed packages are installed.

    Args:
        purpose: what the packages are for, as the message names it.
        needs: the needed packages; if one is listed twice, the first extra counts.

    Raises:
        MissingExtraError: names all missing packages, and one pip line.

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
    """Turn an ImportError into an error that names all missing packages.

    Raises:
        MissingExtraError: a needed package isn't installed.
    """
    try:
        yield
    except ImportError as cause:
        missing = missing_packages(needs)
        if not missing:
            raise
        raise missing_extras(missing, purpose) from cause


def missing_packages(*needs: Needs) -> dict[str, str]:
    """Return the needed packages that aren't installed, each with its extra."""
    wanted = {package: extra for each in reversed(needs) for package, extra in each.items()}
    in_order = dict.fromkeys(package for each in needs for package in each)
    return {package: wanted[package] for package in in_order if not _installed(package)}


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing too
        return False
