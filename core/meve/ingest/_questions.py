"""Finds questions with their answers in a text, as in "Q: How …?" and "A: By …", or "**How …?**" and what follows."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

QUESTION = re.compile(r"\s*(?:\*\*|__)?Q(?:uestion)?\s?\d*(?:\*\*|__)?[.:)]\s*(\S.*)")
ANSWER = re.compile(r"\s*(?:\*\*|__)?A(?:nswer)?\s?\d*(?:\*\*|__)?[.:)]")
EMPHASISED = re.compile(r"\s*(?:[-+*]\s+|\d+[.)]\s+)?(\*\*|__)(?=\S)((?:(?!\1).)*\?)\1(\s.*|$)")
"""A question all emphasised at the beginning of its line, perhaps an item of a list, and what follows it there."""

TITLE = re.compile(r"\s*\S.{0,78}[^\s.!?:;]\s*$")
"""A line that may be the title of a list: short, and no sentence."""

FEWEST = 2
"""The questions that make a text a list of questions."""


class TextLine(Protocol):
    """A line, as `meve.ingest._layout.Line`."""

    text: str
    depth: int
    after_blank: bool
    in_fence: bool

    @property
    def is_heading(self) -> bool:
        """Whether the line is part of a heading."""


def lists_questions(text: str) -> bool:
    """Return whether a text has several questions and an answer."""
    lines = text.split("\n")
    return sum(QUESTION.match(line) is not None for line in lines) >= FEWEST and any(map(ANSWER.match, lines))


def find_questions(lines: Sequence[TextLine]) -> list[tuple[int, int, int, str]]:
    """Return for each question the numbers of its line, of the first line of its answer, and of the line after it.

    The fourth value is the question. An answer ends at the next question or heading. After the last question it ends at
    the next paragraph that isn't indented. A single question is no list. The first question begins at the title above
    it, if there is one.
    """
    pairs = list(_find_pairs(lines))
    if len(pairs) < FEWEST:
        return []
    first, *others = pairs
    above = first[0] - 1
    return [(above, *first[1:]) if above >= 0 and _may_be_title(lines[above]) else first, *others]


def _find_pairs(lines: Sequence[TextLine]) -> Iterator[tuple[int, int, int, str]]:
    marks = [n for n, line in enumerate(lines) if line.is_heading or _asks(line)]
    for number, following in pairwise([*marks, len(lines)]):
        if lines[number].is_heading:
            continue
        if asked := QUESTION.match(lines[number].text):
            question, answers = asked[1], (n for n in range(number + 1, following) if ANSWER.match(lines[n].text))
        elif asked := EMPHASISED.match(lines[number].text):
            first = number if asked[3].strip() else number + 1
            question, answers = asked[2], (n for n in range(first, following) if lines[n].text.strip())
        answer = next(answers, None)
        if answer is None:
            continue
        end, depth = following, lines[number].depth
        if following == len(lines) or lines[following].is_heading:
            paragraphs = (n for n in range(answer + 1, following) if lines[n].after_blank and lines[n].depth <= depth)
            end = next(paragraphs, following)
        yield number, answer, end, question.strip("*_ ")


def _may_be_title(line: TextLine) -> bool:
    return line.after_blank and not (line.is_heading or line.in_fence) and TITLE.match(line.text) is not None


def _asks(line: TextLine) -> bool:
    return not line.in_fence and bool(QUESTION.match(line.text) or EMPHASISED.match(line.text))
