"""Finds the headings of a text, and the headings above each position."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from meve.ingest._markup import ANCHORS

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+\Z")
"""A line of one repeated punctuation mark: the underline of a reStructuredText title."""
LABEL = re.compile(r"^[ \t]*\.\. _.*$", re.MULTILINE)
"""A label, or the address of a link, in reStructuredText."""
_FORMATS = "a abbr b big br code del em font i img ins kbd mark picture s small source span strike strong sub sup tt u"
FORMATTING = frozenset(_FORMATS.split())
"""The HTML elements that format words or mark a place."""
TAG_NAME = re.compile(r"</?([a-z]+)(?=[\s/>])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading and its position."""

    level: int
    """The level; 1 is the outermost."""
    title: str
    start: int
    """The offset of its first character, an overline and labels included."""
    body: int
    """The offset after its last line."""


class Outline:
    """The headings of a text, in order."""

    def __init__(self, headings: Sequence[Heading]) -> None:
        self.headings = tuple(headings)
        self._starts = [heading.start for heading in self.headings]
        self._paths: list[tuple[Heading, ...]] = []
        path: tuple[Heading, ...] = ()
        for heading in self.headings:
            path = (*(above for above in path if above.level < heading.level), heading)
            self._paths.append(path)

    def path(self, offset: int) -> tuple[Heading, ...]:
        """Return the headings above an offset, outermost first; a heading's own offset includes it."""
        place = bisect_right(self._starts, offset)
        return self._paths[place - 1] if place else ()

    def between(self, start: int, end: int) -> tuple[Heading, ...]:
        """Return the headings that begin in [start, end)."""
        return self.headings[bisect_right(self._starts, start - 1) : bisect_right(self._starts, end - 1)]


def line_starts(text: str) -> list[int]:
    """Return the offset of each line of a text, and its length."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(text)
    return starts


def markdown_outline(text: str, front: int = 0) -> Outline:
    """Return the headings of a Markdown text, without those in code, quotations, lists and front matter.

    Args:
        text: the whole text.
        front: the number of lines of its front matter.
    """
    rows, lines = text.split("\n"), line_starts(text)
    headings = []
    for token, inline in pairwise(_parser(blocks_only=True).parse(text)):
        if token.type != "heading_open" or token.level or not token.map or token.map[0] < front:
            continue
        first = above = token.map[0]
        while above > front and (not (label := rows[above - 1]).strip() or ANCHORS.match(label)):
            above -= 1
            first = above if rows[above].strip() else first
        start, body = lines[first], lines[min(token.map[1], len(lines) - 1)]
        (words,) = _parser().parseInline(inline.content)
        plain = "".join(_read_token(child.type, child.content) for child in words.children or ())
        title = " ".join(plain.split())
        headings.append(Heading(level=int(token.tag[1:]), title=title, start=start, body=body))
    return Outline(headings)


def _read_token(kind: str, content: str) -> str:
    """Return the text of a part of a heading: of an HTML tag none, but of a placeholder such as `<file>` all."""
    if kind != "html_inline":
        return " " if kind == "softbreak" else content
    tag = TAG_NAME.match(content)
    name = tag[1].lower() if tag else ""
    if name == "br":
        return " "
    return "" if name in FORMATTING or content.startswith("<!--") else content


def rst_outline(text: str) -> Outline:
    """Return the headings of a reStructuredText; levels follow the order in which adornments first appear."""
    lines, starts = text.split("\n"), line_starts(text)
    levels: dict[tuple[str, bool], int] = {}
    headings = []
    for over, title, line in find_underlined(lines):
        level = levels.setdefault((line[0], over is not None), len(levels) + 1)
        first = above = title[0] if over is None else over
        while above and (LABEL.match(lines[above - 1]) or not lines[above - 1].strip()):
            above -= 1
            first = above if lines[above].strip() else first
        headings.append(Heading(level=level, title=title[1], start=starts[first], body=starts[title[0] + 2]))
    return Outline(headings)


def find_underlined(lines: Sequence[str]) -> Iterator[tuple[int | None, tuple[int, str], str]]:
    """Yield for each title the number of its overline, its own number and text, and its underline."""
    for number in range(len(lines) - 1):
        title, under = lines[number].strip(), lines[number + 1].rstrip()
        if not title or not ADORNMENT.match(under) or ADORNMENT.match(title) or len(under) < len(title):
            continue
        above = lines[number - 1].rstrip() if number else ""
        if above == under:
            yield number - 1, (number, title), under
        elif not above.strip() and not lines[number][0].isspace():
            yield None, (number, title), under


@cache
def _parser(*, blocks_only: bool = False) -> Any:  # noqa: ANN401 - imported late
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    return parser.enable("table").disable("inline") if blocks_only else parser
