"""Parses English statements by rules: their subject, their numbers, dates and names, and whether they are negated."""

import re
from typing import TYPE_CHECKING, NamedTuple

from meve._lazy_field import LazyField
from meve.components.lexical.analyzers import FUNCTION_WORDS, stem, words
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._contradiction.claims import NAME, Claim
from meve.memory._contradiction.values import normalise_values

if TYPE_CHECKING:
    from meve.memory._contradiction.outline import Outline

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/]\d+)*(?:\s?[-–]\s?\d+(?:[.,]\d+)*)*(?:[a-z]+\b|%)?")
_DAYS = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december today tomorrow yesterday weekly daily monthly yearly
"""
_CALENDAR = frozenset(_DAYS.split())
_NEGATIVE_WORDS = """
not no never none nobody nothing neither nor cannot isn't aren't wasn't weren't don't doesn't didn't won't
wouldn't can't couldn't shouldn't mustn't hasn't haven't hadn't
"""
_NEGATIONS = frozenset(_NEGATIVE_WORDS.split())
_COMMON_VERBS = """
need want give take get have keep use make do go come put let like require ask tell say hold stay should must can may
"""
_VERBS = frozenset(map(stem, _COMMON_VERBS.split()))
"""Words that don't distinguish subjects."""
_NO_SUBJECT = _CALENDAR | _NEGATIONS | FUNCTION_WORDS


class StatementValues(NamedTuple):
    """The values in a statement. Two statements with the same subject and values may be duplicates."""

    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    negated: bool


class Statement:
    """A statement, each part of which is parsed when it is first read.

    Args:
        text: the statement.
        outline: what is known of it without parsing; None for nothing.
    """

    def __init__(self, text: str, outline: "Outline | None" = None) -> None:
        self.text = text
        self.outline = outline
        if outline is not None:
            vars(self)["is_negated"] = outline.is_negated  # a field that needn't be parsed
            if outline.is_plain:
                vars(self)["plain"] = text

    @LazyField
    def claim(self) -> Claim:
        """What it claims."""
        claim = Claim(self.text, self.plain)
        if self.outline is not None:
            vars(claim).update(gives_value=self.outline.gives_value, gives_name=self.outline.gives_name)
        return claim

    @LazyField
    def subject(self) -> frozenset[str]:
        """Stems of the content words, without values and negations."""
        words = (word for word in self._words if word not in _NO_SUBJECT and word not in self._names)
        return frozenset(stem(word) for word in words if not word[0].isdigit())

    @LazyField
    def kernel(self) -> frozenset[str]:
        """The subject without common verbs."""
        return self.subject - _VERBS

    @LazyField
    def values(self) -> StatementValues:
        """The values in the statement."""
        days = _CALENDAR.intersection(self._words)
        return StatementValues(
            numbers=frozenset(_normalise(number) for number in NUMBER.findall(self.plain)),
            days=days,
            names=self._names - days,
            negated=self.is_negated,
        )

    @LazyField
    def is_negated(self) -> bool:
        """Whether it holds a word such as `not` or `never`."""
        return not _NEGATIONS.isdisjoint(self._words)

    @LazyField
    def is_wish(self) -> bool:
        """Whether the statement is a standing wish."""
        return is_standing_wish(self.text)

    @LazyField
    def plain(self) -> str:
        """The text with its values in one form."""
        return normalise_values(self.text)

    @LazyField
    def _words(self) -> list[str]:
        return words(self.plain)

    @LazyField
    def _names(self) -> frozenset[str]:
        names = NAME.findall(self.plain)
        return frozenset(name.casefold().removesuffix("'s").removesuffix("’s") for name in names)


def parse_statement(text: str, outline: "Outline | None" = None) -> Statement:
    """Return the subject and the values of a statement."""
    return Statement(text, outline)


def parse_values(text: str) -> StatementValues:
    """Return the values in a statement."""
    return Statement(text).values


def _normalise(number: str) -> str:
    return re.sub(r"\s", "", number).replace("–", "-").replace(",", "").lstrip("+")
