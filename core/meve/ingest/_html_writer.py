"""Writes parsed HTML as Markdown, with rules of our own for elements that `markdownify` glues or drops."""

from typing import Any

from markdownify import MarkdownConverter

from meve.ingest._html_tables import read_rows, write_table
from meve.ingest._superscripts import write_subscript, write_superscript


class MarkdownWriter(MarkdownConverter):
    """Writes parsed HTML as Markdown."""

    def __init__(self) -> None:
        super().__init__(
            heading_style="atx", bullets="-", strip=["a", "img"], escape_asterisks=False, escape_underscores=False,
        )  # fmt: skip
        self._cells: dict[int, str] = {}
        """The texts of cells by their ids, until their table is written."""

    def convert_dt(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401 - as markdownify has it
        """Put the terms of one definition on adjacent lines."""
        before = el.find_previous_sibling()
        term: str = super().convert_dt(el, text, parent_tags)  # type: ignore[misc]  # missing from its stubs
        return term.lstrip("\n") if before is not None and before.name == "dt" else term

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
