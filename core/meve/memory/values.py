"""What a statement says of its subject: numbers, dates, names, and whether it denies. Told by rules, for English.

Two statements about one subject that give another value contradict each other; that of which neither gives another
value may be the same statement twice. An NLI model in their place is a `Contradiction` of one's own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from meve.parts.lexical.analyzers import content_words, words

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/]\d+)*(?:\s?[-–]\s?\d+(?:[.,]\d+)*)?")
_UP_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
_SPELLED = {word: str(n) for n, word in enumerate(_UP_TO_TWENTY.split())}
_SPELLED |= {"once": "1", "twice": "2", "thrice": "3", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100"}
_DAYS = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december today tomorrow yesterday weekly daily monthly yearly
"""
_CALENDAR = frozenset(_DAYS.split())
_DENYING = """
not no never none nobody nothing neither nor cannot isn't aren't wasn't weren't don't doesn't didn't won't
wouldn't can't couldn't shouldn't mustn't hasn't haven't hadn't
"""
_NEGATIONS = frozenset(_DENYING.split())
_LIGHT = """
need want give take get have keep use make do go come put let like require ask tell say hold stay should must can may
"""
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]+")

SUBJECT = 0.6
"""The share of the words of the statement with fewer that the other must hold, for both to be of one subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement, taken apart."""

    about: frozenset[str]
    """Its content words but values and negations, without endings."""
    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    denies: bool

    @property
    def values(self) -> tuple[object, ...]:
        """All but what it is about."""
        return (self.numbers, self.days, self.names, self.denies)


class Contradiction(Protocol):
    """Tells whether two statements of one subject differ."""

    def between(self, one: str, other: str) -> str:
        """In what they differ, in a few words; empty where they don't, or are of different subjects."""
        ...


class RuleContradiction:
    """Compares numbers, days, names and denials of statements that share most of their words."""

    def between(self, one: str, other: str) -> str:
        """In what they differ: `number: 2 / 5`, `day: …`, `name: …`, `denial`; empty where they don't.

        >>> RuleContradiction().between("The shop opens at 9.", "The shop opens at 10.")
        'number: 9 / 10'
        >>> RuleContradiction().between("Alice eats meat.", "Alice doesn't eat meat.")
        'denial'
        >>> RuleContradiction().between("The shop opens at 9.", "Tomatoes need 6 hours of sun.")
        ''
        >>> RuleContradiction().between("The ferry to Oslo leaves at 9.", "The ferry to Bergen leaves at 10.")
        ''
        """
        return difference(taken_apart(one), taken_apart(other))


def taken_apart(text: str) -> Statement:
    """A statement's words and values."""
    numbers = {_plain(each) for each in _NUMBER.findall(text)}
    found = words(text)
    numbers |= {_SPELLED[word] for word in found if word in _SPELLED}
    names = {name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(text)}
    days = {word for word in found if word in _CALENDAR}
    values = names | days | set(_SPELLED)
    said = [w for w in content_words(text) if w not in values and w not in _NEGATIONS and not w[0].isdigit()]
    return Statement(
        about=frozenset(map(_stem, said)),
        numbers=frozenset(numbers),
        days=frozenset(days),
        names=frozenset(names - days),
        denies=not _NEGATIONS.isdisjoint(found),
    )


def difference(one: Statement, other: Statement) -> str:
    """In what two statements of one subject differ; empty where they don't, or are of different subjects.

    Where each has a word of weight that the other lacks, they are taken for different subjects (what basil needs, and
    what fennel needs): to miss a contradiction harms less than to see one where none is. Where names differ, a name is
    the value only if nothing else differs; else it tells two subjects apart.
    """
    if not same_subject(one, other) or (one.about - other.about - _VERBS and other.about - one.about - _VERBS):
        return ""
    pairs = (("number", one.numbers, other.numbers), ("day", one.days, other.days), ("name", one.names, other.names))
    found = [(kind, a - b, b - a) for kind, a, b in pairs if a - b and b - a]
    kinds = ["denial"] * (one.denies != other.denies) + [kind for kind, _, _ in found]
    if not kinds or ("name" in kinds and len(kinds) > 1):
        return ""
    if kinds[0] == "denial":
        return "denial"
    kind, mine, theirs = found[0]
    return f"{kind}: {', '.join(sorted(mine))} / {', '.join(sorted(theirs))}"


def same_subject(one: Statement, other: Statement) -> bool:
    """Whether the statement with fewer words shares most of them with the other, two at least, or all there are."""
    few, many = sorted((one.about, other.about), key=len)
    shared = len(few & many)
    return bool(few) and shared >= min(2, len(few)) and shared >= SUBJECT * len(few)


def first_difference(text: str, others: Sequence[str], judge: Contradiction) -> str:
    """In what a text differs from the first of others that contradicts it."""
    return next((found for other in others if (found := judge.between(text, other))), "")


def _plain(number: str) -> str:
    return re.sub(r"\s", "", number).replace("–", "-").replace(",", "").lstrip("+")


def _stem(word: str) -> str:
    for end in ("ies", "ing", "es", "ed", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)] + ("y" if end == "ies" else "")
    return word


_VERBS = frozenset(map(_stem, _LIGHT.split()))
"""Words that say little of what a statement is about."""
