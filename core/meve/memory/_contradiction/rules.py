"""What a statement says of its subject: numbers, dates, names, and whether it denies. Told by rules, for English.

Two statements about one subject that give another value contradict each other; that of which neither gives another
value may be the same statement twice. An NLI model in their place is a `Contradiction` of one's own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from meve.components.lexical.analyzers import FUNCTION_WORDS, stem, words

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/]\d+)*(?:\s?[-–]\s?\d+(?:[.,]\d+)*)?")
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


class Values(NamedTuple):
    """What a statement says of its subject."""

    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    denies: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement, taken apart."""

    about: frozenset[str]
    """Its content words but values and negations, without endings."""
    values: Values


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
        return self.told(taken_apart(one), taken_apart(other))

    def told(self, one: Statement, other: Statement) -> str:
        """As `between`, of statements that were taken apart before."""
        return difference(one, other)


def values_of(text: str) -> Values:
    """A statement's numbers, days, names, and whether it denies."""
    return _values(text, words(text))


def taken_apart(text: str) -> Statement:
    """A statement's words and values."""
    found = words(text)
    values = _values(text, found)
    apart = values.names | values.days | _SPELLED.keys() | _NEGATIONS | FUNCTION_WORDS
    said = {word for word in found if word not in apart and not word[0].isdigit()}
    return Statement(about=frozenset(map(stem, said)), values=values)


def _values(text: str, found: Sequence[str]) -> Values:
    numbers = {_plain(each) for each in NUMBER.findall(text)}
    numbers |= {_SPELLED[word] for word in _SPELLED.keys() & found}
    names = {name.casefold().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(text)}
    days = _CALENDAR.intersection(found)
    return Values(
        numbers=frozenset(numbers),
        days=days,
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
    mine, theirs = one.values, other.values
    pairs = (
        ("number", mine.numbers, theirs.numbers), ("day", mine.days, theirs.days), ("name", mine.names, theirs.names),
    )  # fmt: skip
    found = [(kind, a - b, b - a) for kind, a, b in pairs if a - b and b - a]
    kinds = ["denial"] * (mine.denies != theirs.denies) + [kind for kind, _, _ in found]
    if not kinds or ("name" in kinds and len(kinds) > 1):
        return ""
    if kinds[0] == "denial":
        return "denial"
    kind, had, has = found[0]
    return f"{kind}: {', '.join(sorted(had))} / {', '.join(sorted(has))}"


def same_subject(one: Statement, other: Statement) -> bool:
    """Whether the statement with fewer words shares most of them with the other, two at least, or all there are."""
    few, many = sorted((one.about, other.about), key=len)
    shared = len(few & many)
    return bool(few) and shared >= min(2, len(few)) and shared >= SUBJECT * len(few)


def _plain(number: str) -> str:
    return re.sub(r"\s", "", number).replace("–", "-").replace(",", "").lstrip("+")


_VERBS = frozenset(map(stem, _LIGHT.split()))
"""Words that say little of what a statement is about."""
