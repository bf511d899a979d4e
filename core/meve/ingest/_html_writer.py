"""Writes parsed HTML as Markdown, with rules of our own for elements that `markdownify` glues or drops."""

import re
from textwrap import indent
from typing import Any
from urllib.parse import unquote

from markdownify import MarkdownConverter

from meve.ingest._html_tables import read_rows, write_table
from meve.ingest._superscripts import write_subscript, write_superscript

HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_BLOCKS = "address aside center details fieldset figure footer form header legend main summary"
BLOCKS = frozenset(_BLOCKS.split())
"""Elements that stand apart, but that `markdownify` takes for parts of a line."""
ADDRESS = re.compile(r"\s*(?:mailto|tel):([^?\s<>|]{1,200})", re.IGNORECASE)
"""The target of a link that writes to an address or calls a number."""
INTEGER = re.compile(r"\s*([+-]?[0-9]{1,9})(?![0-9])")
"""A whole number at the beginning of an attribute."""
NO_DIGITS = re.compile(r"\D+")
FEWEST_DIGITS = 5
"""A text with fewer digits is no telephone number."""


class MarkdownWriter(MarkdownConverter):
    """Writes parsed HTML as Markdown."""

    def __init__(self) -> None:
        super().__init__(
            heading_style="atx", strip=["img"], escape_asterisks=False, escape_underscores=False,
        )  # fmt: skip
        self._cells: dict[int, str] = {}
        """The texts of cells by their ids, until their table is written."""
        self._next: dict[int, int] = {}
        """The number of the next item of each list, by the list's id."""
        self._summaries: dict[int, str] = {}
        """The texts of summaries by the ids of their `<details>`."""

    def process_text(self, el: Any, parent_tags: set[str]) -> str:  # noqa: ANN401 - as markdownify has it
        """Leave out blanks beside a block."""
        beside = (el.previous_sibling, el.next_sibling)
        if "pre" not in parent_tags and not el.strip() and any(each and each.name in BLOCKS for each in beside):
            return ""
        text: str = super().process_text(el, parent_tags)  # type: ignore[misc]  # missing from its stubs
        return text

    def get_conv_fn(self, tag_name: str) -> Any:  # noqa: ANN401
        """Return what writes an element."""
        found = super().get_conv_fn(tag_name)  # type: ignore[misc]
        return found or (_write_block if tag_name in BLOCKS else None)

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        """Keep a link's words, and the mail address or telephone number behind it."""
        found = ADDRESS.match(el.get("href") or "")
        address = "".join(filter(str.isprintable, " ".join(unquote(found[1]).split()))) if found else ""
        if not address or _holds(text, address):
            return text
        words = text.rstrip()
        return f"{words} ({address}){text[len(words) :]}" if words else f" {address} "

    def convert_dt(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401
        """Put the terms of one definition on adjacent lines."""
        before = el.find_previous_sibling()
        term: str = super().convert_dt(el, text, parent_tags)  # type: ignore[misc]
        return term.lstrip("\n") if before is not None and before.name == "dt" else term

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        """Count the items of a list; `markdownify` reads all earlier items for each."""
        bullet = f"{self._count_item(el)}. " if el.parent.name == "ol" else "- "
        return f"{bullet}{indent(words, ' ' * len(bullet))[len(bullet) :]}\n" if (words := text.strip()) else "\n"

    def _count_item(self, item: Any) -> int:  # noqa: ANN401
        """Return the number that a browser shows before an item of a numbered list."""
        parent = item.parent
        is_reversed = parent.has_attr("reversed")
        number = _read_integer(item.get("value"))
        if number is None:
            number = self._next.get(id(parent), _read_integer(parent.get("start")))
        if number is None:
            number = len(parent.find_all("li", recursive=False)) if is_reversed else 1
        self._next[id(parent)] = number - 1 if is_reversed else number + 1
        return number

    def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return write_superscript(el, text)

    def convert_sub(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return write_subscript(el, text)

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        """Keep a cell until its table is written."""
        self._cells[id(el)] = text
        return ""

    convert_th = convert_td

    def convert_tr(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return f"\n{words}\n" if (words := text.strip()) else ""

    def convert_table(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        """Write what stands outside the cells, such as the caption, above the table."""
        return f"\n\n{text.strip()}\n\n{write_table(read_rows(el, self._cells))}\n\n"

    def convert_summary(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401
        """Keep a summary until its `<details>` are written."""
        if el.parent.name != "details" or id(el.parent) in self._summaries:
            return _write_block(el, text, parent_tags)
        self._summaries[id(el.parent)] = text.strip()
        return ""

    def convert_details(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401
        """Write a question as a term and its answer as the definition, and other summaries as lines above the rest."""
        summary, body = self._summaries.get(id(el), ""), text.strip()
        is_line = "_inline" not in parent_tags and bool(summary and body) and not HEADING.search(summary)
        words = " ".join(summary.split())
        if is_line and words.rstrip("*_` ").endswith("?") and not HEADING.search(body):
            return f"\n\n{words}\n:{indent(body, '    ')[1:]}\n\n"
        above = f"**{words}**" if is_line and "*" not in words else summary
        return _write_block(el, f"{above}\n\n{body}", parent_tags)

    def convert_option(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return f", {text}"

    def convert_select(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        """Put commas between options."""
        return f" {' '.join(text.split()).replace(' , ', ', ').strip(' ,')} "

    convert_datalist = convert_select


def _read_integer(value: str | None) -> int | None:
    found = INTEGER.match(value or "")
    return int(found[1]) if found else None


def _holds(text: str, address: str) -> bool:
    """Return whether a text holds an address or number; "030 1234" holds +49301234."""
    if address.casefold() in text.casefold():
        return True
    digits = NO_DIGITS.sub("", text).lstrip("0")
    return "@" not in address and len(digits) >= FEWEST_DIGITS and NO_DIGITS.sub("", address).endswith(digits)


def _write_block(el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG001
    words = text.strip()
    if "_inline" in parent_tags:
        return f" {' '.join(words.split())} "
    return f"\n\n{words}\n\n" if words else ""
