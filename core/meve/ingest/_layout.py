"""Ranks the lines at which Markdown or reStructuredText may be cut, and finds the terms that it defines."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from meve._tables import is_head, read_csv_rows, split_cells
from meve.ingest._headings import Outline, line_starts
from meve.ingest._mail_threads import find_mails
from meve.ingest._markup import FENCE, LABELLED, mark_comments, mark_rst
from meve.ingest._questions import find_questions

HEADING, ENTRY, BLOCK, LINE, GLUED = range(5)
"""A line begins a section, an entry of a list of definitions or questions (or what follows the list) or a block, stands
within a block, or belongs to the line above. Texts are cut at the lowest of these, at the least indented lines first,
and never before a glued line."""
Form = Literal["markdown", "rst", "text", "csv"]
"""The markup of a text."""
MAX_DEPTH = 40
"""Columns of indentation that count, since every column may cost one level of recursion."""
ANNOUNCEMENT = re.compile(r".*:\s*$|\s*#{1,6} |\s*(\*\*?|__?)\S.*\1\s*$")
"""A line that announces the next: it ends with a colon, or is a heading in a list, or all emphasised."""
MARKUP = re.compile(r"\s*(\.\. .*|:[\w-]+:(\s.*)?)$")
"""The same in reStructuredText: a label, a directive, or an option of a directive."""
DIRECTIVE = re.compile(r"\s*\.\. ([\w:.+-]+)::\s+(\S.*)")
_NOTES = """
note tip hint important attention caution warning danger error admonition seealso todo rubric image math
versionadded versionchanged versionremoved deprecated deprecated-removed
"""
NOTES = frozenset(_NOTES.split())
"""Directives with an argument that define nothing."""
DEFINITION = re.compile(r"\s*:\s+(?=\S)")
ITEM = re.compile(r"\s*([:*+-]|\d+[.)])\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A defined term, or a directive with its argument."""

    title: str
    depth: int
    outer: "Term | None"
    """The term whose definition contains this one."""
    is_note: bool = False
    """It is a directive that defines nothing."""


@dataclass(slots=True, kw_only=True)
class Line:
    """A line that isn't blank."""

    start: int
    body: int
    """The offset after the heading that the line is part of; otherwise the start."""
    text: str
    depth: int
    """The column of its first word; in a fence, deeper than the fence."""
    after_blank: bool
    rank: tuple[int, int] = (GLUED, 0)
    """One of `HEADING`, `BLOCK`, `LINE` and `GLUED`, and the level or depth."""
    term: Term | None = None
    """The innermost term whose definition contains the line."""
    header: str = ""
    """The names of the columns, if it is a row of a table in Markdown."""
    in_fence: bool = False
    """It stands within a fenced block."""
    is_markup: bool = False
    """It is a fence, a comment or a directive, and says nothing by itself."""
    opens: bool = False
    """It begins a fenced block."""
    closes: bool = False
    """It ends one."""

    @property
    def is_heading(self) -> bool:
        return self.start < self.body


class Layout:
    """The lines of a text that aren't blank, in order.

    Args:
        text: the whole text.
        outline: its headings.
        form: the markup of the text.
        front: the number of lines of its front matter, which are left out.
    """

    def __init__(self, text: str, outline: Outline, form: Form, *, front: int = 0) -> None:
        begin = sum(len(line) + 1 for line in text.split("\n", front)[:front])
        self.lines = [line for line in _read_lines(text, form) if line.start >= begin]
        self._starts = [line.start for line in self.lines]
        self._text = text
        if form == "csv":
            self._find_records()
            return
        if form == "rst":
            mark_rst(self.lines)
        elif form == "markdown":
            mark_comments(text, self.lines)
        self._rank_lines(outline, rst=form == "rst")
        if form != "text":
            self._find_terms(rst=form == "rst")
        self._make_entries((*find_questions(self.lines), *find_mails(self.lines)))
        if form == "markdown":
            self._find_tables()

    def terms(self, offset: int) -> tuple[str, ...]:
        """Return the terms whose definitions contain an offset, outermost first, and the columns of a table's row."""
        place = bisect_right(self._starts, offset)
        term, header = (self.lines[place - 1].term, self.lines[place - 1].header) if place else (None, "")
        titles: tuple[str, ...] = (header,) if header else ()
        while term is not None:
            titles, term = (term.title, *titles), term.outer
        return titles

    def says_something(self, start: int, end: int) -> bool:
        """Return whether text[start:end] holds a letter or digit that isn't markup."""
        first = max(bisect_right(self._starts, start) - 1, 0)
        lines = self.lines[first : bisect_right(self._starts, end - 1)]
        parts = (self._text[max(start, line.start) : min(end, line.start + len(line.text))] for line in lines)
        return any(not line.is_markup and any(map(str.isalnum, part)) for line, part in zip(lines, parts, strict=True))

    def without_cut_fences(self, start: int, end: int) -> tuple[int, int]:
        """Return the span without a leading line that ends a block begun before, and a last one that begins a block."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end) - 1
        if first < last and self.lines[first].closes and self.lines[first].start == start:
            start = self.lines[first + 1].start
        if first < last and self.lines[last].opens:
            end = self.lines[last - 1].start + len(self.lines[last - 1].text.rstrip())
        return start, end

    def _find_records(self) -> None:
        """Keep the lines of each record of a text in CSV together, and name the columns of all but the first."""
        columns, numbers = read_csv_rows(self._text.split("\n"))
        offsets = line_starts(self._text)
        head, first, *others = (offsets[number] for number in numbers)
        begins = {head, *others}
        for line in self.lines:
            line.rank = (LINE if line.start in begins or line.start < head else GLUED, 0)
            line.header = ", ".join(columns) if line.start >= first else ""

    def _rank_lines(self, outline: Outline, *, rst: bool) -> None:
        headings = {heading.start: heading for heading in outline.headings}
        above, body = None, 0
        for line in self.lines:
            if heading := headings.get(line.start):
                line.rank, body = (HEADING, heading.level), heading.body
            elif above is None or not (above.is_heading or _announces(above.text, rst=rst)):
                depth = min(line.depth, MAX_DEPTH)
                if line.after_blank:
                    line.rank = (BLOCK, depth)
                elif above is None or line.depth <= above.depth:
                    line.rank = (LINE, depth)
            line.body = max(line.start, body)
            above = line

    def _find_terms(self, *, rst: bool) -> None:
        term: Term | None = None
        for number, line in enumerate(self.lines):
            leaves = False
            while term is not None and term.depth >= line.depth:
                leaves = leaves or not term.is_note
                term = term.outer
            if leaves and line.rank[0] == BLOCK:
                line.rank = (ENTRY, line.rank[1])
            first, titles = self._terms_above(number, rst=rst)
            if titles:
                start = self.lines[first]
                directive = DIRECTIVE.match(start.text) if rst else None
                is_note = directive is not None and directive[1] in NOTES
                term = Term(title=", ".join(titles), depth=start.depth, outer=term, is_note=is_note)
                for bound in self.lines[first + 1 : number + 1]:
                    bound.rank = (GLUED, 0)
                if start.rank[0] != GLUED and not is_note:
                    start.rank = (ENTRY, min(start.depth, MAX_DEPTH))
            line.term = term

    def _make_entries(self, found: Iterable[tuple[int, int, int, str]]) -> None:
        """Make each question with its answer an entry, and each mail; their titles are terms of the later lines."""
        for first, answer, end, title in found:
            start, outer = self.lines[first], self.lines[first].term
            term = Term(title=title, depth=start.depth, outer=outer)
            for line in self.lines[first + 1 : end]:
                line.term = term if line.term is outer else line.term
            for line in self.lines[first + 1 : answer + 1]:
                line.rank = (GLUED, 0)
            for line in (start, *self.lines[end : end + 1]):
                if line.rank[0] in {BLOCK, LINE}:
                    line.rank = (ENTRY, min(line.depth, MAX_DEPTH))

    def _find_tables(self) -> None:
        """Name the columns of each row of a table, and keep its head with the first row."""
        header = ""
        for above, line, below in zip(self.lines, self.lines[1:], [*self.lines[2:], None], strict=False):
            if line.after_blank or line.in_fence or "|" not in line.text:
                header = ""
            elif is_head(above.text, line.text) and not above.in_fence:
                header = ", ".join(filter(None, split_cells(above.text)))
                for glued in (line, below):
                    if glued is not None and not glued.after_blank:
                        glued.rank = (GLUED, 0)
                continue
            line.header = header

    def _terms_above(self, number: int, *, rst: bool) -> tuple[int, list[str]]:
        """Return the terms that a line begins to define, and the number of the first."""
        line, first = self.lines[number], number
        if not number or line.is_heading or self.lines[number - 1].is_heading:
            return number, []
        if rst:
            directive = DIRECTIVE.match(self.lines[number - 1].text)
            if directive and directive[1] not in LABELLED and line.depth > self.lines[number - 1].depth:
                return number - 1, [" ".join(directive.groups()).rstrip()]
        elif DEFINITION.match(line.text):
            column = line.text.index(":")
            while first and _may_be_term(self.lines[first - 1], column):
                first -= 1
                if self.lines[first].after_blank:
                    break
            if line.after_blank and first < number - 1:  # a paragraph
                first = number
        return first, [term.text.strip() for term in self.lines[first:number]]


def _announces(line: str, *, rst: bool) -> bool:
    return bool(ANNOUNCEMENT.match(line) or (rst and MARKUP.match(line)))


def _may_be_term(line: Line, column: int) -> bool:
    return line.depth == column and not line.is_heading and not line.text.lstrip().startswith("|")


def _read_lines(text: str, form: Form) -> Iterator[Line]:
    start, column, fence, after_blank = 0, 0, "", True
    inner = 0  # the column at which the text of the outermost list item begins, or 0 outside lists
    for line in text.split("\n"):
        words = line.strip()
        if words:
            in_fence = is_markup = closes = False
            depth = len(line) - len(line.lstrip())
            if fence and (depth >= column or (not inner and column <= 3)):  # as in CommonMark
                if words.startswith(fence) and not words.strip(fence[0]):
                    fence, is_markup, closes = "", True, True
                in_fence = not is_markup
                depth = max(depth, column) + column + 1
            elif form in {"markdown", "text"}:
                if depth < inner or not inner:
                    item = ITEM.match(line)
                    inner = item.end() if item else 0
                opening, definition = FENCE.match(line), DEFINITION.match(line)
                fence, column = (opening[1], opening.start(1)) if opening else ("", 0)
                is_markup = bool(opening) and words.startswith(fence)
                depth = definition.end() if definition else depth
            yield Line(
                start=start, body=start, text=line, depth=depth, after_blank=after_blank,
                in_fence=in_fence, is_markup=is_markup, opens=bool(fence) and not in_fence, closes=closes,
            )  # fmt: skip
        after_blank = not words
        start += len(line) + 1
