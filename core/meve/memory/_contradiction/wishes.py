"""Tells standing wishes about different things apart: a wish for short answers doesn't end one for German."""

import re

from meve.components.lexical.analyzers import stem
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._contradiction.statements import Statement

_ASPECTS = {
    "language": r"english|french|german|spanish|italian|portuguese|dutch|swedish|norwegian|danish|finnish|polish|czech"
    r"|russian|ukrainian|greek|turkish|arabic|hebrew|hindi|chinese|mandarin|japanese|korean|latin|language",
    "length": r"short(?:er)?|brief(?:er|ly)?|concise(?:ly)?|long(?:er)?|details?|detailed|verbose|succinct(?:ly)?|wordy"
    r"|sentences?|(?:words|lines|paragraphs?) (?:at most|or less|max)|(?:under|more than|at most|up to) \w+"
    r" (?:sentences?|words|lines|paragraphs?)",
    "emojis": r"emojis?|smileys?",
    "form": r"bullets?|bullet points?|lists?|tables?|headings?|markdown|full sentences|prose|charts?|paragraphs",
    "name": r"call me|address me|my (?:full |first |last )?name|go by|(?:i'?m|i am) called",
    "tone": r"formal(?:ly)?|informal(?:ly)?|casual(?:ly)?|polite(?:ly)?|friendly|blunt(?:ly)?|humou?r(?:ous)?|jokes?"
    r"|serious(?:ly)?|critical|chatty|sugar-?coat|flatter\w*|apologi[sz]\w*",
    "units": r"metric|imperial|celsius|fahrenheit|units?|miles|kilomet(?:er|re)s|pounds|kilos",
    "difficulty": r"jargon|technical|simpl[ey]r?|plain(?:ly)?|abbreviations?|foreign words|beginner|expert|layman",
    "spelling": r"spelling|british|american|lower case|upper case|capitals?",
    "dates": r"dates?|times? of day|24-hour|12-hour|iso format",
    "sources": r"sources?|cite|citations?|links?|references?",
    "comments": r"comments?|commented",
}
_CALL_ME = re.compile(r"(?:please )?call me (\w[\w'’-]*)(?: from now on)?\W{0,3}$", re.IGNORECASE)
_ANSWER_IN = re.compile(
    r"(?:(?:always|please|from now on),? ){0,3}(?:answer|reply|respond|speak|write)(?: to me)? in "
    rf"({_ASPECTS['language']})(?: from now on)?\W{{0,3}}$",
    re.IGNORECASE,
)
_PATTERNS = {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in _ASPECTS.items()}


def concern_different_wishes(older: Statement, newer: Statement) -> bool:
    """Return whether one of two statements is a standing wish, and the other tells of something else.

    What is said later ends a wish only if it names the same aspect of answers, such as their language. A wish ends what
    is none only if they share more than names, unlike "My boss is Ingrid" and "From now on write formally to Ingrid".
    """
    is_older, is_newer = is_standing_wish(older.text), is_standing_wish(newer.text)
    if not (is_older or is_newer):
        return False
    aspects = find_aspects(older.text), find_aspects(newer.text)
    if not aspects[0].isdisjoint(aspects[1]):
        return False
    if is_older and any(aspects):
        return True
    return not (older.claim.content & newer.claim.content).difference(map(stem, older.claim.names))


def revoke_wish(older: Statement, newer: Statement) -> bool:
    """Return whether the older statement is a standing wish, and the newer one names the same aspect of answers."""
    return is_standing_wish(older.text) and not find_aspects(older.text).isdisjoint(find_aspects(newer.text))


def wish_otherwise(older: Statement, newer: Statement) -> bool:
    """Return whether two statements ask to call the user by different names, or to answer in different languages."""
    for pattern in (_CALL_ME, _ANSWER_IN):
        old, new = pattern.match(older.text), pattern.match(newer.text)
        if old is not None and new is not None:
            return old[1].casefold() != new[1].casefold()
    return False


def find_aspects(wish: str) -> frozenset[str]:
    """Return the aspects of answers that a text names, such as `language` or `length`."""
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(wish))
