"""Judges how a newer standing wish relates to what a user said before, by rules for English.

A wish ends only a wish, and only one about the same ways of answering: a language, the length, or emojis.
"""

import re
from typing import NamedTuple

from meve.memory._classify.standing_wishes import LANGUAGE
from meve.memory._contradiction.statements import Statement

_ASPECTS = {
    "length": r"(?P<short>short|shorter|brief|briefly|concise|succinct|under \d+ words)"
    r"|(?P<long>long|longer|detailed|wordy|verbose|in detail)",
    "manners": r"(?P<formal>formal|formally|sir|madam)"
    r"|(?P<informal>informal|informally|casual|casually|du|first names?)",
    "units": r"(?P<metric>metric|celsius|grams?|kilomet\w+|kilos?)"
    r"|(?P<imperial>imperial|fahrenheit|ounces?|miles|pounds)",
    "currency": r"(?P<euro>euros?)|(?P<dollar>dollars?)|(?P<franc>francs?)|(?P<sterling>sterling)|(?P<yen>yen)",
    "spelling": r"(?P<british>british)|(?P<american>american)",
    "clock": r"(?P<day>24-hour)|(?P<half>12-hour)",
    "emojis": r"emojis?|emoticons?",
    "bullets": r"bullets?|bullet points?|lists?",
    "tables": r"tables?",
    "markdown": r"markdown|headings?|plain text",
    "sources": r"sources?|links?|citations?|references?",
    "examples": r"examples?",
    "jargon": r"jargon|technical (?:terms|language)|simple words|plain language",
    "apologies": r"apologi\w+",
    "greetings": r"greet\w*|small talk|introductions?",
    "disclaimers": r"disclaimers?",
}
_PATTERNS = {name: re.compile(rf"\b(?:{pattern})\b") for name, pattern in _ASPECTS.items()}
_LANGUAGE = re.compile(rf"\b{LANGUAGE}\b(?! (?:spelling|phrases|words))")
_CALLED = re.compile(
    r"\b(?:call|address|refer to) me (?:by |as )?(?!formally|informally|in\b)([\w. '-]+?)(?= from| any|,|$)"
)
_DENIED = re.compile(
    r"\b(?:don't|do not|needn't|didn't|no|not|never|stop|stopped|without|avoid|skip|no longer)\b(?! longer than)"
)
_NARROWED = re.compile(r"\b(?:when|whenever|if|unless|every time|each time|for \w+,|e?-?mails?|letters?|code)\b")


class _Wish(NamedTuple):
    aspects: dict[str, frozenset[str]]
    """By what it is about, the values it names."""
    is_denied: bool
    is_narrowed: bool


def relate_wishes(older: Statement, newer: Statement) -> bool | None:
    """Return whether a newer wish ends an older statement; None if the newer one is no wish, or other rules decide.

    >>> from meve.memory._contradiction.statements import parse_statement
    >>> german = parse_statement("Always answer in German.")
    >>> relate_wishes(german, parse_statement("You don't have to answer in German any more."))
    True
    >>> relate_wishes(german, parse_statement("Please keep your answers short from now on."))
    False
    """
    if not newer.is_wish:
        return None
    new = _parse(newer.text)
    if not older.is_wish:
        return None if "name" in new.aspects else False  # "call me Nora from now on" also ends "my name is Nina"
    old = _parse(older.text)
    if not old.aspects or not new.aspects:
        return None
    if old.aspects.keys().isdisjoint(new.aspects):
        return False
    if not old.aspects.keys() <= new.aspects.keys() or (new.is_narrowed and not old.is_narrowed):
        return False
    if old.is_narrowed and not (new.is_narrowed or new.is_denied):
        return False
    return True if all(_conflict(old, new, name) for name in old.aspects) else None


def _conflict(old: _Wish, new: _Wish, name: str) -> bool:
    """Return whether two wishes about the same thing can't both hold."""
    before, after = old.aspects[name], new.aspects[name]
    if not (before or after) or before & after or not (before and after):
        return old.is_denied != new.is_denied
    return not (old.is_denied or new.is_denied)


def _parse(text: str) -> _Wish:
    plain = " ".join(text.casefold().replace("’", "'").split()).rstrip(".!? ")
    aspects = {}
    for name, pattern in _PATTERNS.items():
        found = list(pattern.finditer(plain))
        if found:
            aspects[name] = frozenset(match.lastgroup for match in found if match.lastgroup)
    if languages := frozenset(_LANGUAGE.findall(plain)):
        aspects["language"] = languages
    if called := _CALLED.search(plain):
        aspects["name"] = frozenset((called[1].strip(),))
    return _Wish(aspects, _DENIED.search(plain) is not None, _NARROWED.search(plain) is not None)
