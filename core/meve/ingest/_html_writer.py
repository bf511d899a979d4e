"""Writes parsed HTML as Markdown, with rules of our own for elements that `markdownify` glues or drops."""

from typing import Any

from markdownify import MarkdownConverter

from meve.ingest._superscripts import write_subscript, write_superscript


class MarkdownWriter(MarkdownConverter):
    """Writes parsed HTML as Markdown."""

    def __init__(self) -> None:
        super().__init__(
            heading_style="atx", bullets="-", strip=["a", "img"], escape_asterisks=False, escape_underscores=False,
            table_infer_header=True,
        )  # fmt: skip

    def convert_dt(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401 - as markdownify has it
        """Put the terms of one definition on adjacent lines."""
        before = el.find_previous_sibling()
        term: str = super().convert_dt(el, text, parent_tags)  # type: ignore[misc]  # missing from its stubs
        return term.lstrip("\n") if before is not None and before.name == "dt" else term

    def convert_sup(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return write_superscript(el, text)

    def convert_sub(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401, ARG002
        return write_subscript(el, text)
