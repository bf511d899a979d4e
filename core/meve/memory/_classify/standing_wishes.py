"""Detects standing wishes of a user to the assistant, by rules for English."""

import re

_VERBS = (
    "add address answer ask avoid call cite convert end explain format give include keep make mention put quote reply "
    "respond say show sign speak spell start suggest talk translate use write"
)
_WISH = re.compile(
    r"(?:please,?\s+)?(?:"
    rf"(?:always|never|from\s+now\s+on,?|in\s+(?:the\s+)?future,?|don't\s+ever|do\s+not\s+ever)\s+(?:please\s+)?"
    rf"(?:always\s+|never\s+|don't\s+|do\s+not\s+)?(?:{'|'.join(_VERBS.split())})\b"
    r"|(?:keep|make)\s+(?:your\s+|all\s+|all\s+your\s+)?(?:answers|replies|responses)\b"
    r"|call\s+me\s+(?!back\b|on\b|at\b|when\b|later\b|tomorrow\b|today\b))",
    re.IGNORECASE,
)


def is_standing_wish(text: str) -> bool:
    """Return whether a text begins with a wish about how the assistant should answer from now on.

    >>> [is_standing_wish(t) for t in ("Always answer in German.", "Please keep your answers short.", "Never mind!")]
    [True, True, False]
    """
    return _WISH.match(text.strip()) is not None
