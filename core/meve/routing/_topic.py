"""Finds what a question is about: its distinctive words, and the parts that can be searched for by themselves."""

import re

from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.memory._recall.time_expressions import TimeWindow
from meve.routing._base_forms import base_stem

_LISTED = """
many much often frequently times time number total amount overall combined average altogether list name names all
every kind kinds type types sort sorts different various other some any ever so far since ago between first last
recent recently most more less long old day days week weeks month months year years date got get gets getting go
goes going went gone do done make makes made take takes took have been say said tell told mention mentioned talk
talked discuss discussed know remember remind summarize summarise summary recap describe please today yesterday
currently now new come came thing things stuff something anything past previous previously before after during each
both one two three order myself which usually like compare difference better than pass passed spent spend happen
happened happening doing everything nothing up lately wrong well went busy interesting special highlights moments
accomplish accomplished achieve achieved
"""
_FRAME = frozenset(_LISTED.split())
"""Words of questions that say nothing about their topic."""
_PARTS = re.compile(
    r"\b(?:between|or|and|before|after|than|versus|vs|compared (?:to|with)|since|until|when|while)\b|,", re.IGNORECASE
)
_MOST_PARTS = 4
_LEAST_WORDS = 2


def topic_stems(question: str, period: TimeWindow | None = None) -> frozenset[str]:
    """Return the stems of the words that a question is about, without those of the time that it names.

    >>> sorted(topic_stems("How many times did I go hiking with Sam?"))
    ['hike', 'sam']
    """
    text = question if period is None else question.replace(period.expression, " ")
    return frozenset(base_stem(word) for word in words(text) if word not in FUNCTION_WORDS and word not in _FRAME)


def split_parts(question: str) -> list[str]:
    """Return the parts of a question that name different things; none if it names one.

    >>> split_parts("Did I buy the red bike before my trip to Oslo?")
    ['Did I buy the red bike', 'my trip to Oslo?']
    """
    parts = [part.strip() for part in _PARTS.split(question)]
    telling = [part for part in parts if len(topic_stems(part)) >= _LEAST_WORDS]
    return telling[:_MOST_PARTS] if len(telling) > 1 else []
