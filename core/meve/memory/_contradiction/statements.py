"""Parses English statements by rules: their subject, their numbers, dates and names, and whether they are negated."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from meve.components.lexical.analyzers import FUNCTION_WORDS, stem, words
from meve.memory._contradiction.claims import NAME, Claim, parse_claim
from meve.memory._contradiction.values import normalise_values

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


class StatementValues(NamedTuple):
    """The values in a statement. Two statements with the same subject and values may be duplicates."""

    numbers: frozenset[str]
    days: frozenset[str]
    names: frozenset[str]
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A parsed statement."""

    text: str
    subject: frozenset[str]
    """Stems of the content words, without values and negations."""
    values: StatementValues
    claim: Claim


def parse_statement(text: str) -> Statement:
    """Return the subject and the values of a statement."""
    plain = normalise_values(text)
    text_words = words(plain)
    values = _find_values(plain, text_words)
    excluded = values.names | values.days | _NEGATIONS | FUNCTION_WORDS
    subject = {word for word in text_words if word not in excluded and not word[0].isdigit()}
    return Statement(text=text, subject=frozenset(map(stem, subject)), values=values, claim=parse_claim(text))


def parse_values(text: str) -> StatementValues:
    """Return the values in a statement."""
    plain = normalise_values(text)
    return _find_values(plain, words(plain))


def _find_values(text: str, text_words: Sequence[str]) -> StatementValues:
    numbers = {_normalise(number) for number in NUMBER.findall(text)}
    names = {name.casefold().removesuffix("'s").removesuffix("’s") for name in NAME.findall(text)}
    days = _CALENDAR.intersection(text_words)
    return StatementValues(
        numbers=frozenset(numbers),
        days=days,
        names=frozenset(names - days),
        negated=not _NEGATIONS.isdisjoint(text_words),
    )


def _normalise(number: str) -> str:
    return re.sub(r"\s", "", number).replace("–", "-").replace(",", "").lstrip("+")
