"""Finds lines that say nothing by themselves: fences, comments and directives."""

import re
from collections.abc import Iterable
from typing import Protocol

FENCE = re.compile(r"(?:\s*(?:[:*+-]|\d+[.)])\s)*\s*(`{3,}+(?=[^`]*$)|~{3,}+)")
"""The beginning of a fenced block, perhaps within list items."""
DIRECTIVE = re.compile(r"\s*\.\. ([\w:.+-]+)::(?:\s+(.*))?$")
OPTION = re.compile(r"\s+:[\w-]+:(\s|$)")
TARGET = re.compile(r"\s*(\.\. (_|\|[^|]*\| )|__ )")
"""A label, the address of a link, or a substitution."""
FOOTNOTE = re.compile(r"\s*\.\. \[[^\]]+\]\s")
SILENT = frozenset(
    "toctree contents index include literalinclude image raw meta highlight currentmodule module default-domain sectnum "
    "autosummary program-output plantuml graphviz tabularcolumns".split()
)
"""Directives whose argument and body aren't text."""
LABELLED = frozenset("code code-block sourcecode parsed-literal figure only ifconfig container class role".split())
"""Directives whose argument isn't text, but whose body is."""


class MarkedLine(Protocol):
    """A line, as `meve.ingest._layout.Line`."""

    start: int
    text: str
    depth: int
    in_fence: bool
    is_markup: bool


def hide_unclosed_fences(text: str) -> str:
    """Return a Markdown text of the same length, in which points replace each fence that nothing closes later."""
    lines = text.split("\n")
    longest: list[dict[str, int]] = [{"`": 0, "~": 0}]
    """For the lines from the last one up: the longest fence that they could close."""
    for line in reversed(lines):
        words = line.strip()
        if words[:1] in ("`", "~") and _closes(words, words[0]) and len(words) > longest[-1][words[0]]:
            longest.append({**longest[-1], words[0]: len(words)})
        else:
            longest.append(longest[-1])
    fence, column = "", 0
    for number, line in enumerate(lines):
        words = line.strip()
        if fence and (column <= 3 or not words or len(line) - len(line.lstrip()) >= column):
            fence = "" if _closes(words, fence) else fence
            continue
        opening = FENCE.match(line)
        fence, column = (opening[1], opening.start(1)) if opening else ("", 0)
        if fence and column <= 3 and longest[len(lines) - 1 - number][fence[0]] < len(fence):
            lines[number] = line[:column] + "." * (len(line) - column)
            fence = ""
    return "\n".join(lines)


def close_fence(text: str) -> str:
    """Return a Markdown text with the line that closes its last fence, if that is missing."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            fence = "" if _closes(line.strip(), fence) else fence
        elif opening := FENCE.match(line):
            fence = opening[1]
    return f"{text}\n{fence}" if fence else text


def _closes(words: str, fence: str) -> bool:
    return words.startswith(fence) and not words.strip(fence[0])


def mark_comments(text: str, lines: Iterable[MarkedLine]) -> None:
    """Mark the lines of HTML comments, if nothing stands beside them; a comment without an end is none."""
    end = 0
    for line in lines:
        if line.start >= end and not line.in_fence and line.text.lstrip().startswith("<!--"):
            close = text.find("-->", line.start)
            if close < 0:
                return
            stop = text.find("\n", close)
            if not text[close + 3 : stop if stop >= 0 else len(text)].strip():
                end = close + 3
        line.is_markup = line.is_markup or line.start < end


def mark_rst(lines: Iterable[MarkedLine]) -> None:
    """Mark the lines of comments, labels, and directives without text in reStructuredText."""
    hidden: int | None = None  # the column of the comment or directive whose body is no text
    directive: int | None = None  # the column of the directive whose options may follow
    for line in lines:
        if hidden is not None and line.depth > hidden:
            line.is_markup = True
            continue
        hidden = None
        if directive is not None and line.depth > directive and OPTION.match(line.text):
            line.is_markup = True
            continue
        directive = None
        words = line.text.strip()
        if TARGET.match(line.text):
            line.is_markup = True
        elif found := DIRECTIVE.match(line.text):
            directive = line.depth
            is_silent = found[1] in SILENT or found[1].startswith("auto")
            line.is_markup = is_silent or found[1] in LABELLED or not found[2]
            hidden = line.depth if is_silent else None
        elif (words == ".." or words.startswith(".. ")) and not FOOTNOTE.match(line.text):
            line.is_markup, hidden = True, line.depth
