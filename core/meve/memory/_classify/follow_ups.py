"""Names whom or what a sentence tells more of, in place of its pronoun, by rules for English.

"My sister Tonya lives in Akron. She's a nurse." are two facts, of which one may end without the other. They are told
apart only where nobody and nothing else can be meant.
"""

import re
from typing import NamedTuple

from meve.components.lexical.analyzers import stem
from meve.memory._contradiction.comments import is_comment
from meve.memory._contradiction.lexicon import CALENDAR, COPULAS, KIN, VERBS

_WORDS_FOR_WOMEN = """
mother daughter sister wife girlfriend grandmother aunt niece stepdaughter granddaughter landlady
"""
_WORDS_FOR_MEN = """
father son brother husband boyfriend grandfather uncle nephew stepson grandson landlord
"""
_FEMALE, _MALE = frozenset(_WORDS_FOR_WOMEN.split()), frozenset(_WORDS_FOR_MEN.split())
_NOT_MEANT = {"he": _FEMALE, "his": _FEMALE, "she": _MALE, "her": _MALE}
"""Pronouns of one person, and whom they don't mean."""
_WORDS_FOR_OTHERS = """
assistant babysitter baby boss boy cat child cleaner coach dentist doctor dog girl gp granddaughter grandson hamster
horse intern kid kitten landlady landlord man manager nanny neighbour partner pony professor puppy rabbit supervisor
teacher therapist trainer tutor vet woman
"""
_OTHERS = frozenset(_WORDS_FOR_OTHERS.split())
"""Persons and pets, besides relatives."""
_OWNERS = frozenset(("My", "Our"))
_MOST_NOUNS = 5
_FURTHER = re.compile(r"(he|she|it|his|her|its)((?:['’](?:s|ll))?)\s+(?!and\b|or\b)", re.IGNORECASE)
_HAS = re.compile(
    r"(?:always|never|just|already|also|since|only|recently|finally|been|got|had|become|done|gone|taken|\w+(?:ed|en|wn))\b"
)
"""Words before which "'s" may be "has": "She's got", "She's never liked dogs"."""
_NAME = r"[A-Z][\w-]*"
_PLACE = re.compile(rf"\b(?:an?|the|in|at|from|near|on|since|until|of)\s+(?:the\s+)?{_NAME}(?:\s+{_NAME})*")
"""A place, a time or a thing with a name, which is no person: "in Oslo", "a Mini"."""
_GIVEN_NAME = re.compile(
    rf"(?:now\s+|still\s+|called\s+)?({_NAME}(?:\.?\s+{_NAME}){{0,2}})(?=[.!]|\s+(?:from|at|in)\b|$)"
)
_THING = re.compile(r"\b(?:the|my|our|his|her|this|that|another|some|an?)\s+\w")
_KIND = re.compile(r"an?\s")


class _Subject(NamedTuple):
    """Whom or what a sentence is about."""

    text: str
    head: str
    """A relation such as `sister`, another person, or a thing; empty if there is only a name."""
    is_person: bool
    rest: str
    """What the sentence says after the verb and after a name that it gives."""
    is_kind: bool
    """It says of which kind the subject is: "is a plumber"."""


def name_referent(first: str, further: str) -> str:
    """Return a sentence with the subject of the first one in place of its pronoun; empty if that isn't certain.

    >>> name_referent("My sister Tonya lives in Akron.", "She's a nurse.")
    'My sister Tonya is a nurse.'
    >>> name_referent("My sister lives with our mother.", "She's a nurse.")
    ''
    """
    follows, subject = _FURTHER.match(further), _read_subject(first)
    if follows is None or subject is None or is_comment(further):
        return ""
    pronoun, ending = follows[1].lower(), follows[2][1:]
    is_meant = _is_thing_meant(subject) if pronoun in ("it", "its") else _is_person_meant(subject, pronoun)
    if not is_meant:
        return ""
    said = further[follows.end() :]
    if pronoun in ("his", "her", "its") or (ending == "s" and _HAS.match(said)):
        return f"{subject.text}'s {said}"
    return " ".join(filter(None, (subject.text, {"s": "is", "ll": "will"}.get(ending, ""), said)))


def _read_subject(sentence: str) -> _Subject | None:
    """Return the subject of a sentence that begins with the user's person or thing, before the first verb."""
    words = sentence.rstrip(".!").split()[: _MOST_NOUNS + 3]
    if words[:1] == [] or words[0] not in _OWNERS:
        return None
    place = next((n for n in range(2, len(words)) if _is_verb(words[n], words[n - 1])), 0)
    nouns = words[1:place]
    common = [word for word in nouns if word[0].islower()]
    if not nouns or not all(word.isalpha() or "-" in word for word in nouns) or {"and", "or"} & set(nouns):
        return None
    head = KIN.get(stem(common[-1]), common[-1]) if common else ""
    text, rest = " ".join(words[:place]), sentence.split(maxsplit=place + 1)[-1] if len(words) > place + 1 else ""
    is_copula, is_named = words[place] in COPULAS, common != nouns
    given = _GIVEN_NAME.match(rest) if is_copula and not is_named else None
    if given:
        return _Subject(given[1], head, True, rest[given.end() :], False)
    is_person = is_named or head in KIN.values() or head in _OTHERS
    return _Subject(text, head, is_person, rest, is_copula and _KIND.match(rest) is not None)


def _is_verb(word: str, before: str) -> bool:
    is_after_person = before[0].isupper() or stem(before) in KIN or before in _OTHERS
    return word in VERBS or (is_after_person and word.islower() and word.endswith(("s", "ed")))


def _is_person_meant(subject: _Subject, pronoun: str) -> bool:
    """Return whether "he" or "she" can mean the subject, and nobody else that the sentence names."""
    others = _NOT_MEANT[pronoun]
    if not subject.is_person or subject.head in others:
        return False
    named = [word.strip(".,!'’") for word in _PLACE.sub("", subject.rest).split()]
    people = {KIN[stem(word)] for word in named if stem(word) in KIN}
    people |= set() if subject.is_kind else _OTHERS.intersection(named)
    has_name = any(word[:1].isupper() and word != "I" and word.lower() not in CALENDAR for word in named)
    return people <= others and not has_name


def _is_thing_meant(subject: _Subject) -> bool:
    """Return whether "it" can mean the subject, and nothing else that the sentence names or that is done."""
    if subject.rest.startswith("to "):
        return False
    return bool(subject.head) and not subject.is_person and (subject.is_kind or not _THING.search(subject.rest))
