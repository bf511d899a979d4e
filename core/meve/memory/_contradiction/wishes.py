"""Tells standing wishes about different things apart: a wish for short answers doesn't end one for German."""

import re

from meve.components.lexical.analyzers import stem
from meve.memory._classify.standing_wishes import LANGUAGE
from meve.memory._classify.wish_aspects import find_aspects
from meve.memory._classify.wish_endings import ends_allowance, read_ending
from meve.memory._contradiction.statements import Statement

_CALL_ME = re.compile(r"(?:please )?call me (\w[\w'’-]*)(?: from now on)?\W{0,3}$", re.IGNORECASE)
_ANSWER_IN = re.compile(
    r"(?:(?:always|please|from now on),? ){0,3}(?:answer|reply|respond|speak|write)(?: to me)? in "
    rf"({LANGUAGE})(?: from now on)?\W{{0,3}}$",
    re.IGNORECASE,
)


def concern_different_wishes(older: Statement, newer: Statement) -> bool:
    """Return whether one of two statements is a standing wish, and the other tells of something else.

    What is said later ends a wish only if it names the same aspect of answers, such as their language. A wish ends what
    is none only if they share more than names, unlike "My boss is Ingrid" and "From now on write formally to Ingrid".
    """
    is_older, is_newer = older.is_wish, newer.is_wish
    if not (is_older or is_newer) or (is_older and read_ending(newer.text, older.text)):
        return False
    aspects = find_aspects(older.text), find_aspects(newer.text)
    if not aspects[0].isdisjoint(aspects[1]):
        return False
    if is_older and any(aspects):
        return True
    return not (older.claim.content & newer.claim.content).difference(map(stem, older.claim.names))


def revoke_wish(older: Statement, newer: Statement) -> bool:
    """Return whether the older statement is a standing wish, and the newer one names the same aspect of answers."""
    return older.is_wish and not find_aspects(older.text).isdisjoint(find_aspects(newer.text))


def wish_otherwise(older: Statement, newer: Statement) -> bool:
    """Return whether the newer of two statements takes a standing wish back, or wishes otherwise than the older one."""
    if older.is_wish and read_ending(newer.text, older.text):
        return True
    if newer.is_wish and ends_allowance(newer.text, older.text):
        return True
    for pattern in (_CALL_ME, _ANSWER_IN):
        old, new = pattern.match(older.text), pattern.match(newer.text)
        if old is not None and new is not None:
            return old[1].casefold() != new[1].casefold()
    return False
