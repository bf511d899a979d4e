"""Tells corrections of a value that was told, and equal statements of another amount, by rules for English."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from meve.components.lexical.analyzers import FUNCTION_WORDS, content_words, stem
from meve.memory._contradiction.claims import Claim
from meve.memory._contradiction.lexicon import (
    COPULAS,
    IRREGULAR_PASTS,
    MONTHS,
    NO_EVENTS,
    PAST_VERBS,
    UNMARKED_PASTS,
    VERBS,
    WEEKDAY,
)
from meve.memory._contradiction.news import ONE_DAY

_FORMER_VALUE = re.compile(r"\b(?:instead of|rather than|not) (\d[\w:.-]*)")
_VALUE = rf"(?:\d(?:[\w:.-]{{0,20}}\w)?%?|{'|'.join(sorted(MONTHS))}|{WEEKDAY})"
_PREPOSITION = r"(?:(?:in|on|at|for|until|till|by) )?"
_NOT_FORMER = re.compile(rf"\b(?P<told>{_VALUE})(?: [a-z]+){{0,3}}, (?:and )?not {_PREPOSITION}(?P<former>{_VALUE})\b")
"""A value, and the one that it corrects: "in July, not August"."""
_OPENER = re.compile(
    r"(?:(?P<wrong>actually|correction|scratch that|strike that|my (?:mistake|bad)|i (?:misspoke|was wrong|meant|mean)"
    r"|i got (?:that|it) wrong)|(?:it |as it )?turns out(?: that)?|oh|ah|well|no|wait|sorry|ok|okay|so|but|hm+)\b"
    r"[\s,.:;!\u2013\u2014-]+"
)
_SIGNS = (
    ", not ", " and not ", "wrong", "correct", "scratch", "strike", "mistake", "my bad", "misspoke", "mean", "actually",
)  # fmt: skip
"""One of these is in each correction."""
_WRONG_ABOUT = re.compile(
    r"\b(?:i|we) (?:was|were) wrong (?:about|on) (?:the|that|this|my|our) (?P<thing>[^,.;:!?]{1,60})"
    r"[,.;:\u2013\u2014-]+ "
    rf"(?:(?:it|that|this|he|she|they) |actually )[^,.;:!?]{{0,40}}?(?<![\w.:-])(?P<told>{_VALUE})(?![\w-])"
)
"""A thing about which the user was wrong, and its right value: "I was wrong about the soil test, it was 6.2"."""
_KINDS = (
    ("day", re.compile(WEEKDAY)),
    ("month", re.compile("|".join(sorted(MONTHS)))),
    ("time", re.compile(r"\d\d:\d\d")),
    ("date", re.compile(r"(?:\d{4}-)?\d\d-\d\d")),
)
_AMOUNT = re.compile(r"[-+]?\d+(?:\.\d+)?([a-z]*|%)")
_PRONOUNS = frozenset(("he", "she", "it", "they"))
_OWN = frozenset(("i", "we"))
_DETERMINERS = frozenset(("my", "our", "his", "her", "their", "that", "this", "your", "now"))
_ENDS_SUBJECT = frozenset(("on", "of", "for", "in", "at", "with", "from", "to"))
_AUXILIARIES = frozenset(("have", "has", "had", "will", "would", "can", "could", "may", "might", "should", "did"))
_AFTER_IS = frozenset(("due", "born"))
"""Words that follow "is", which is left out of claims when it is contracted: "Tammy's due in July"."""
_OTHER_PASTS = frozenset(("beat", "bet", "bred", "cost", "fled", "led", "quit", "sank", "spread", "won"))
_PASTS = PAST_VERBS | IRREGULAR_PASTS | UNMARKED_PASTS | _OTHER_PASTS
_OWNER = re.compile(r"(?:(my|our)|his|her|their|your) ")
_MORE = frozenset(("also", "too", "another", "sometimes"))
_LONGEST = 14
"""The most words of a statement whose value is corrected."""
_FURTHER_CLAUSE = re.compile(r"[,;:.!?] \w| (?:and|but) (?:i|we|he|she|it|they|my|our|his|her|their|the)\b")
_PLURALS = 3
"""The most words of which only one of two statements has the plural."""
_PER = re.compile(r"\d (?:an?|per|each|every) [a-z]")


def names_former(old: Claim, new: Claim) -> bool:
    """Return whether the newer statement names what the older one tells as no longer true: "15 rather than 12"."""
    text = " ".join(new.words)
    former = new.former.union(_FORMER_VALUE.findall(text))
    subject = _nouns(_find_subject(new.words)) if former else []
    if subject and _PRONOUNS.isdisjoint(subject) and old.word_set.isdisjoint(subject):
        return False  # "Dale is due in August" and "Tammy is due in July, not August"
    is_named = bool(former) and former <= {*old.words, *map(stem, old.words)}
    return is_named and bool((old.topics & new.topics) - former) and not ONE_DAY.search(text)


def find_correction(old: Claim, new: Claim) -> Literal["", "sure", "likely"]:
    """Return whether the newer statement corrects a value that the older one tells of the same subject, even an event.

    It does if it names the older value as wrong ("She turned 91, not 90"), says that the user was wrong about a thing
    ("I was wrong about the soil test, it was 6.2"), or repeats the older one with another value behind "correction" or
    "scratch that". It is only `likely` if it says in other words what the value is of ("Tammy is expecting in August"
    and "Tammy is due in July, not August"), or if the older one has a further clause.
    """
    if not any(sign in new.plain for sign in _SIGNS) or new.is_question or len(old.words) > _LONGEST:
        return ""
    if corrects_another(old, new):
        return ""
    found = _find_value(old, new)
    return "likely" if found and _FURTHER_CLAUSE.search(old.plain) else found


def _find_value(old: Claim, new: Claim) -> Literal["", "sure", "likely"]:
    text, is_marked = _without_opener(new.plain)
    if is_marked and _differ_in_value(old.words, Claim(text, text).words):
        return "sure"
    if (match := _NOT_FORMER.search(text)) is not None:
        return _find_corrected(old, Claim(text[: match.start("told")], text[: match.start("told")]).words, match)
    if (match := _WRONG_ABOUT.search(new.plain)) is not None:
        return "sure" if _is_wrong_about(old, match) else ""
    return ""


def _find_corrected(old: Claim, before: Sequence[str], match: re.Match[str]) -> Literal["", "sure", "likely"]:
    """Return what a statement with these words before "91, not 90" corrects of an older one."""
    told, former = match["told"], match["former"]
    if _kind(told) != _kind(former) or former not in old.words or told in old.words:
        return ""
    subject, known = _find_subject(before), _find_subject(old.words)
    said = {stem(word) for word in content_words(" ".join(before[len(subject) :]))}
    is_repeated = said <= set(map(stem, old.words))
    if len(subject) == 1 and subject[0] in _PRONOUNS:
        return "sure" if said and is_repeated and known and known[0] not in _OWN else ""
    nouns = _nouns(subject)
    if not nouns or not known or known[-1] != nouns[-1] or not old.word_set.issuperset(nouns):
        return ""
    is_same_verb = bool(said) or not COPULAS.isdisjoint(old.words)
    return "sure" if is_repeated and is_same_verb else "likely"


def _is_wrong_about(old: Claim, match: re.Match[str]) -> bool:
    """Return whether an older statement tells another value of the thing that somebody was wrong about."""
    told, thing = match["told"], Claim(match["thing"], match["thing"]).words
    known = _find_subject(old.words)
    places = range(len(old.words) - len(thing) + 1)
    is_named = any(old.words[n : n + len(thing)] == thing for n in places) and bool(known) and known[-1] in thing
    values = [word for word in old.words if re.fullmatch(_VALUE, word) and _kind(word) == _kind(told)]
    return is_named and old.names <= {*thing, *old.subject[:1]} and len(values) == 1 and values[0] != told


def corrects_another(old: Claim, new: Claim) -> bool:
    """Return whether a correction is of another thing of a kind, or of one with a name that the older statement lacks.

    "The piano lesson is on Tuesday" and "the cello lesson is on Wednesday, not Tuesday", or "the bus to Cork leaves at
    7" and "I was wrong about the bus to Kerry, it leaves at 8".
    """
    if _NOT_FORMER.search(new.plain):
        text = _without_opener(new.plain)[0]
        mine, theirs = _OWNER.match(old.plain), _OWNER.match(text)
        if mine and theirs and (mine[1] is None) != (theirs[1] is None):
            return True  # "my train" and "her train"
        head = Claim(text, text).head - _AFTER_IS
        if old.head & head and old.head - head and head - old.head:
            return True
    match = _WRONG_ABOUT.search(new.plain) if "wrong" in new.plain else None
    return match is not None and not new.names.intersection(match["thing"].split()) <= old.word_set


def have_other_amount(old: Claim, new: Claim) -> bool:
    """Return whether two statements of what somebody does or has now are equal but for the number of something.

    "We keep eleven hens" and "we keep nine hens", but not "I ran 5 km" and "I ran 7 km", which are two events, or
    "I teach class 5" and "I teach class 6", which are two things.
    """
    place = _differ_in_value(old.words, new.words)
    if not place or old.passing or not _MORE.isdisjoint(old.words) or _AMOUNT.fullmatch(old.words[place]) is None:
        return False
    before = old.words[:place]
    if not (_AUXILIARIES.isdisjoint(before[:-1]) and _tells_now(before)) or ONE_DAY.search(old.plain):
        return False
    return all(_is_quantity(claim, place) for claim in (old, new))


def _tells_now(before: Sequence[str]) -> bool:
    """Return whether the words before a number are a subject, a verb in the present tense and what stands between."""
    if any(word in _PASTS or (word.endswith("ed") and len(word) > 4 and word not in NO_EVENTS) for word in before):
        return False
    if before[0] in _PRONOUNS:
        return False  # which may mean somebody else
    if before[0] in _OWN:
        return len(before) == 2 or not VERBS.isdisjoint(before)
    verb = next((word for word in before[1:] if word in VERBS), before[-1])
    return len(before) > 1 and (verb in VERBS or (verb.endswith("s") and not verb.endswith("ss")))


def _is_quantity(claim: Claim, place: int) -> bool:
    """Return whether a number counts or measures something, and isn't the name of a class, a bus or a room."""
    number, earlier = claim.words[place], claim.words[place - 1]
    is_label = not (earlier in VERBS | FUNCTION_WORDS or place == 2 or earlier.endswith("s"))
    follow = claim.words[place + 1 : place + 3]
    counts = number == "1" or any(word.endswith("s") and not word.endswith("ss") for word in follow)
    return not is_label and (counts or not number[-1].isdigit() or _PER.search(claim.plain) is not None)


def _differ_in_value(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the place of the only word in which texts differ, but for plurals, if it is a value; else 0."""
    if len(old) != len(new):
        return 0
    pairs = [(n, a, b) for n, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    places = [n for n, a, b in pairs if stem(a) != stem(b)] if len(pairs) <= _PLURALS + 1 else []
    if len(places) != 1 or not all(re.fullmatch(_VALUE, words[places[0]]) for words in (old, new)):
        return 0
    return places[0] if _kind(old[places[0]]) == _kind(new[places[0]]) else 0


def _kind(value: str) -> str:
    """Return what a value is: a day, a time or a number with its unit."""
    for name, pattern in _KINDS:
        if pattern.fullmatch(value):
            return name
    amount = _AMOUNT.fullmatch(value)
    return f"number {amount[1]}" if amount else value


def _find_subject(words: Sequence[str]) -> list[str]:
    """Return the words before the first verb or preposition."""
    return list(takewhile(lambda word: not _is_verb(word) and word not in _ENDS_SUBJECT, words))


def _nouns(subject: Sequence[str]) -> list[str]:
    return [word for word in subject if word not in _DETERMINERS]


def _is_verb(word: str) -> bool:
    return word in VERBS | _AFTER_IS or word in _PASTS or (word.endswith("ed") and len(word) > 4)


def _without_opener(text: str) -> tuple[str, bool]:
    """Return a text in lower case without words such as "oh wait", and whether they say that something was wrong."""
    is_marked, begin = False, 0
    while match := _OPENER.match(text, begin):
        is_marked, begin = is_marked or match["wrong"] is not None, match.end()
    return text[begin:], is_marked
