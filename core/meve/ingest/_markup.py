"""Finds lines that say nothing by themselves: fences, comments and directives."""

import re
from collections.abc import Iterable
from typing import Protocol

FENCE = re.compile(r"(?:\s*(?:[:*+-]|\d+[.)])\s)*\s*(`{3,}+(?=[^`]*$)|~{3,}+)")
"""The beginning of a fenced block, perhaps within list items."""
DIRECTIVE = re.compile(r"\s*\.\. ([\w:.+-]+)::(?:\s+(.*))?$")
FILE = re.compile(r"\.{1,2}/\S+$")
"""The argument of a directive that reads another file."""
OPTION = re.compile(r"\s+:[\w-]+:(\s|$)")
ANCHORS = re.compile(r"(?:\s*<(?:a|i|span)\s[^<>]*></(?:a|i|span)>)+\s*$")
"""A line of addresses in Markdown, as HTML elements without text."""
TAGS = re.compile(r"(?:\s*</?(?:a|i|b|p|br|hr|div|span|center|details|summary|section)(?:\s[^<>]*|/)?>)+\s*$")
"""A line of tags in Markdown, without text between them."""
LINK = re.compile(r" {0,3}\[(?!\^)[^\]]{1,200}\]:\s*\S+(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?\s*$")
"""The address of a link in Markdown."""
PAGE_OPTION = re.compile(r":(orphan|nosearch|nocomments|tocdepth|hide-toc):")
"""A field of reStructuredText that tells how to show the page."""
TARGET = re.compile(r"\s*(\.\. (_|\|[^|]*\| )|__ )")
"""A label, the address of a link, or a substitution."""
FOOTNOTE = re.compile(r"\s*\.\. \[[^\]]+\]\s")
YAML = re.compile(r"\s*(#|- |[\w.$\"'-][^:#]*:(\s|$))|\s+\S")
"""A line of front matter."""
FRONT_LINES = 200
"""Front matter that is longer is text."""
_SILENT = """
toctree contents index include literalinclude image raw meta highlight currentmodule module default-domain sectnum
autosummary program-output plantuml graphviz tabularcolumns
"""
SILENT = frozenset(_SILENT.split())
"""Directives whose argument and body aren't text."""
_LABELLED = "code code-block sourcecode parsed-literal figure only ifconfig container class role"
LABELLED = frozenset(_LABELLED.split())
"""Directives whose argument isn't text, but whose body is."""


class MarkedLine(Protocol):
    """A line, as `meve.ingest._layout.Line`."""

    start: int
    text: str
    depth: int
    in_fence: bool
    is_markup: bool


def read_front_matter(text: str) -> tuple[int, str]:
    """Return the number of lines of a Markdown text's YAML front matter, and the title that stands there.

    The YAML isn't parsed: only a title in one line is read, and aliases are never replaced.
    """
    lines = text.split("\n", FRONT_LINES)[:FRONT_LINES]
    if lines[0].rstrip() != "---":
        return 0, ""
    title = ""
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in {"---", "..."}:
            return number + 1, title
        if line.strip() and not YAML.match(line):
            return 0, ""
        name, _, value = line.partition(":")
        if name == "title" and not value.strip().startswith(("*", "&", "|", ">", "{", "[")):
            title = value.strip().strip("'\"").strip()
    return 0, ""


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


def says_nothing(line: str) -> bool:
    """Return whether a line of Markdown only holds the addresses of links, or tags."""
    return bool(TAGS.match(line) or LINK.match(line))


def mark_comments(text: str, lines: Iterable[MarkedLine]) -> None:
    """Mark the lines of HTML comments, if nothing stands beside them; a comment without an end is none."""
    end, last = 0, text.rfind("-->")
    for line in lines:
        line.is_markup = line.is_markup or (not line.in_fence and says_nothing(line.text))
        if end <= line.start < last and not line.in_fence and line.text.lstrip().startswith("<!--"):
            close = text.find("-->", line.start)
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
        if TARGET.match(line.text) or PAGE_OPTION.match(line.text):
            line.is_markup = True
        elif found := DIRECTIVE.match(line.text):
            directive = line.depth
            is_silent = found[1] in SILENT or found[1].startswith("auto")
            line.is_markup = is_silent or found[1] in LABELLED or not found[2] or bool(FILE.match(found[2]))
            hidden = line.depth if is_silent else None
        elif (words == ".." or words.startswith(".. ")) and not FOOTNOTE.match(line.text):
            line.is_markup, hidden = True, line.depth
