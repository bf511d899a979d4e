"""Writes tables of HTML as Markdown, and finds those that only lay out a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from bs4.element import NavigableString

PARTS = frozenset({"caption", "colgroup", "thead", "tbody", "tfoot", "tr", "td", "th"})
HEADING = re.compile(r"h[1-6]")
BLOCKS = frozenset({"p", "div", "section", "article", "ul", "ol", "dl", "blockquote", "pre", "hr", "form", "figure"})
MOST_COLUMNS = 1000
"""Columns that a cell may span, as in the standard of HTML."""
MOST_HEADS = 3
"""Rows of headers that become one row."""
REPEATS = 8
"""The texts of cells that span others are repeated until the table is this many times as long."""


@dataclass(slots=True, kw_only=True)
class _Facts:
    """The properties of a table by which it is taken for data or for the layout of a page."""

    has_role: bool
    """Its role says that it is none."""
    has_table: bool = False
    has_heading: bool = False
    has_blocks: bool = False
    is_titled: bool = False
    """It has a caption, a head, or cells that are headers."""
    rows: int = 0
    cells: set[int] = field(default_factory=set)
    """The ids of the cells with text."""

    @property
    def is_layout(self) -> bool:
        if self.has_role or self.has_table:
            return True
        count = len(self.cells)
        is_list = self.rows <= 1 or count <= self.rows
        return not self.is_titled and (self.has_heading or count <= 1 or (self.has_blocks and is_list))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table, and the rows and columns that it spans."""

    text: str
    rows: int
    columns: int


@dataclass(slots=True, kw_only=True)
class Row:
    """A row of a table."""

    cells: list[Cell]
    is_head: bool = True
    """Each cell is a header, or stands in the head."""


def unwrap_layouts(soup: Any) -> None:  # noqa: ANN401 - imported late
    """Make the tables of a page that hold no data, and parts of tables outside a table, plain blocks.

    These are tables with the role of a presentation, or that hold other tables; and among those without a caption and
    headers, tables with headings, with a single cell, and with blocks in a single row or column.
    """
    places: dict[int, tuple[int, int]] = {}  # of each element: the ids of the innermost table and cell, or 0
    facts: dict[int, _Facts] = {}
    parts = []
    for element in soup.descendants:
        table, cell = places.get(id(element.parent), (0, 0))
        found = facts.get(table)
        if isinstance(element, NavigableString):
            if found is not None and cell and element.strip():
                found.cells.add(cell)
            continue
        name = element.name
        if found is not None:
            found.has_table = found.has_table or name == "table"
            found.has_heading = found.has_heading or HEADING.fullmatch(name) is not None
            found.has_blocks = found.has_blocks or name in BLOCKS
            found.is_titled = found.is_titled or name in {"th", "thead", "caption"}
            found.rows += name == "tr"
        if name == "table":
            table, cell = id(element), 0
            facts[table] = _Facts(has_role=element.get("role") in {"presentation", "none"})
        elif name in {"td", "th"}:
            cell = id(element)
        places[id(element)] = table, cell
        if name == "table" or name in PARTS:
            parts.append((element, table))
    for element, table in parts:
        if not table or facts[table].is_layout:
            element.name = "div"


def read_rows(table: Any, texts: dict[int, str]) -> list[Row]:  # noqa: ANN401 - imported late
    """Return the rows of a table, with those of its foot last.

    Args:
        table: an element without other tables in it.
        texts: the texts of its cells, by their ids.
    """
    rows: list[Row] = []
    for part in sorted(table.find_all(["tr", "td", "th"]), key=lambda part: _find_group(part) == "tfoot"):
        if part.name == "tr":
            rows.append(Row(cells=[]))
            continue
        if not rows:
            rows.append(Row(cells=[]))
        columns = min(_read_span(part.get("colspan")) or 1, MOST_COLUMNS)
        spanned = _read_span(part.get("rowspan"))
        text = texts.get(id(part), "").strip().replace("\n", " ").replace("|", r"\|")
        rows[-1].cells.append(Cell(text=text, rows=spanned, columns=columns))
        rows[-1].is_head &= part.name == "th" or _find_group(part) == "thead"
    return rows


def _find_group(part: Any) -> str:  # noqa: ANN401
    name: str = part.find_parent(["thead", "tbody", "tfoot", "table"]).name
    return name


def _read_span(value: str | None) -> int:
    """Return the number of rows or columns that a cell spans; 0 stands for all that follow."""
    digits = (value or "1").strip()
    return int(digits[:5]) if digits.isascii() and digits.isdigit() else 1


def write_table(rows: Sequence[Row]) -> str:
    """Return a table as Markdown, in which the text of a cell stands in each row and column that it spans.

    A cell that fills its row stands there once; above the headers, it becomes a line before the table. Rows of headers
    that spans join become one row.
    """
    first = 0
    while first < len(rows) - 1 and _is_title(rows[first], rows[first + 1]):
        first += 1
    titles, rest = [row.cells[0].text for row in rows[:first]], rows[first:]
    lines = list(_spread(rest))
    heads = _count_heads(rest)
    columns = [" ".join(dict.fromkeys(filter(None, column))) for column in zip_longest(*lines[:heads])]
    lines = [columns, ["---"] * len(columns), *lines[heads:]] if columns else lines
    written = [f"| {' | '.join(line)} |" for line in lines if line]
    return "\n\n".join([*titles, "\n".join(written)]).strip()


def _is_title(row: Row, below: Row) -> bool:
    return len(row.cells) == 1 and row.cells[0].columns > 1 and below.is_head


def _count_heads(rows: Sequence[Row]) -> int:
    """Return the number of rows that name the columns: the first, and headers below it that share spans with it."""
    reach = 0
    for number, row in enumerate(rows[:MOST_HEADS]):
        reach = max([reach, *(number + (cell.rows or len(rows)) for cell in row.cells if cell.rows != 1)])
        is_divided = len(row.cells) > 1 and any(cell.columns > 1 for cell in row.cells)
        below = rows[number + 1] if number + 1 < len(rows) else None
        if below is None or not (row.is_head and below.is_head and (is_divided or reach > number + 1)):
            return number + 1
    return min(len(rows), MOST_HEADS)


def _spread(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the texts of each row, one a column."""
    width = max((sum(cell.columns for cell in row.cells) for row in rows if len(row.cells) > 1), default=1)
    budget = REPEATS * sum(1 + len(cell.text) for row in rows for cell in row.cells)
    spans: dict[int, tuple[str, int]] = {}  # by column, the text of a cell above, and the row that ends it
    for number, row in enumerate(rows):
        budget -= sum(1 + len(text) for text, _ in spans.values())
        if budget < 0:
            spans = {}
        line: list[str] = []
        is_whole = len(row.cells) == 1 and not spans
        for cell in row.cells:
            while len(line) in spans:
                line.append(spans[len(line)][0])
            first, repeats = len(line), min(cell.columns, width) - 1
            cost = repeats * (1 if is_whole else 1 + len(cell.text))
            if cost > budget:
                repeats = cost = 0
            budget -= cost
            line += [cell.text, *["" if is_whole else cell.text] * repeats]
            end = min(number + cell.rows, len(rows)) if cell.rows else len(rows)
            if end > number + 1:
                spans.update({column: (text, end) for column, text in enumerate(line[first:], start=first)})
        while len(line) in spans:
            line.append(spans[len(line)][0])
        yield line if row.cells else []
        spans = {column: span for column, span in spans.items() if span[1] > number + 1}
