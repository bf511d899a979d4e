"""Refuse typing errors of the names of bundled models, which would be looked for on a hub."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from meve.errors import ConfigurationError

TYPO = 0.75
"""The least similarity to a bundled name of one that counts as a typing error; the ratio of `difflib`."""


def refuse_typo(kind: str, name: str, bundled: Sequence[str], others: str) -> None:
    """Raise an error for a name that is nearly one of a bundled model, in any case of letters, and is no folder.

    Args:
        kind: `embedder` or `verifier`, for the message.
        name: the given name, of no bundled model.
        bundled: the names of the bundled models.
        others: what else is valid, for the message.

    Raises:
        ConfigurationError: the message names the bundled model that was probably meant.

    >>> refuse_typo("embedder", "statc", ["minilm", "static"], "a folder")
    Traceback (most recent call last):
    meve.errors.ConfigurationError: embedder 'statc' isn't known: did you mean 'static'? Valid are 'minilm', 'static', \
a folder
    """
    meant = get_close_matches(name.lower(), bundled, n=1, cutoff=TYPO)
    if meant and not Path(name).exists():
        valid = ", ".join(map(repr, bundled))
        raise ConfigurationError(f"{kind} {name!r} isn't known: did you mean {meant[0]!r}? Valid are {valid}, {others}")
