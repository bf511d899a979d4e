"""Rewrites a text by patterns that ignore case, each of which is searched for only if a sign of it is there."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Write: TypeAlias = str | Callable[[re.Match[str]], str]
Step: TypeAlias = tuple[Sequence[str], re.Pattern[str], Write]
"""Signs, one of which is in a folded text if the pattern matches, and which are found faster; the pattern; what
replaces it."""
_FOLDED = str.maketrans("İıſ", "iis")
"""Letters that match others when case is ignored, although their lower case differs."""


def rewrite(text: str, steps: Iterable[Step]) -> str:
    """Return a text after some steps, in their order; a pattern is only searched for if a sign of it is there."""
    folded = fold(text)
    for signs, pattern, write in steps:
        for sign in signs:
            if sign in folded:
                text = pattern.sub(write, text)
                folded = fold(text)
                break
    return text


def fold(text: str) -> str:
    """Return a text in the lower case by which patterns that ignore case compare letters.

    >>> fold("Kim saw İzmir")
    'kim saw izmir'
    """
    return (text if text.isascii() else text.translate(_FOLDED)).lower()
