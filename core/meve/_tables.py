"""Find the rows of tables in Markdown and CSV, and the headers that name their columns."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence

_RULE = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")
_LAST_BAR = re.compile(r"(?<!\\)\|$")
_NUMBER = re.compile(r"[+-]?[\d.,:%/-]+")
_DELIMITERS = "\t;,"
FEWEST_ROWS = 3
"""The fewest rows of a text in CSV: a header and two others."""
MOST_ABOVE = 10
"""The most rows above the header of a text in CSV."""


def split_cells(line: str) -> list[str]:
    r"""Return the cells of a table's row in Markdown; `\|` is a bar within a cell.

    >>> split_cells("| Name | Weight |"), split_cells("Name | A\\| B")
    (['Name', 'Weight'], ['Name', 'A| B'])
    """
    cells = _BAR.split(_LAST_BAR.sub("", line.strip().removeprefix("|")))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def is_head(above: str, line: str) -> bool:
    """Return whether two lines are the header of a table in Markdown and the rule below it."""
    if "|" not in line or "|" not in above:
        return False
    rule = split_cells(line)
    return all(map(_RULE.fullmatch, rule)) and len(rule) == len(split_cells(above))


def read_csv_rows(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the columns of a text in CSV, and the numbers of the lines at which rows begin, that of the header first.

    Fields are separated by tabs, semicolons or commas. All rows have as many fields, three or more (two with tabs), and
    none in the header is a number or empty. Above the header may stand blank rows and those with a single value. Both
    lists are empty for other texts.
    """
    for delimiter in _DELIMITERS:
        fewest = 2 if delimiter == "\t" else 3
        if not any(line.count(delimiter) + 1 >= fewest for line in lines[: MOST_ABOVE + 1]):
            continue
        reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
        rows, starts, start = [], [], 0
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    starts.append(start)
                start = reader.line_num
        except csv.Error:
            continue
        head = next((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
        names = [name.strip() for name in rows[head]] if head < len(rows) else []
        has_names = len(names) >= fewest and all(name and not _NUMBER.fullmatch(name) for name in names)
        is_table = head <= MOST_ABOVE and len(rows) - head >= FEWEST_ROWS and len({len(r) for r in rows[head:]}) == 1
        if has_names and is_table:
            return names, starts[head:]
    return [], []


def read_csv_header(text: str) -> list[str]:
    """Return the columns of a text in CSV whose lines are rows, the first of them the header; empty for others."""
    lines = [line for line in text.split("\n") if line.strip()]
    names, starts = read_csv_rows(lines)
    return names if len(starts) == len(lines) else []


def split_tables(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each belongs to a table: a header with its rule, a row, or other lines."""
    lines = text.split("\n")
    if read_csv_header(text):
        yield from ((line, True) for line in lines if line.strip())
        return
    other: list[str] = []
    n, in_table = 0, False
    while n < len(lines):
        is_first = n + 1 < len(lines) and is_head(lines[n], lines[n + 1])
        in_table = is_first or (in_table and "|" in lines[n])
        taken = lines[n : n + 1 + is_first]
        if in_table:
            if other:
                yield "\n".join(other), False
            other = []
            yield "\n".join(taken), True
        else:
            other += taken
        n += len(taken)
    if other:
        yield "\n".join(other), False


def find_headers(parts: Sequence[str]) -> Mapping[int, int]:
    """Return for each row among the parts of a text the index of its header, by the index of the row."""
    if read_csv_header("\n".join(parts)):
        return dict.fromkeys(range(1, len(parts)), 0)
    headers: dict[int, int] = {}
    header: int | None = None
    for n, part in enumerate(parts):
        above, rule, rest = [*part.split("\n", 2), "", ""][:3]
        if rule and not rest and is_head(above, rule):
            header = n
        elif header is not None and "|" in part and not rule:
            headers[n] = header
        else:
            header = None
    return headers
