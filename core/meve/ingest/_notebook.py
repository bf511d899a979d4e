"""Reads the cells of a Jupyter notebook as Markdown."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from meve.errors import IngestError
from meve.ingest._markup import close_fence


def notebook_to_markdown(text: str) -> str:
    r"""Return the Markdown cells of a notebook, and its code cells in fences; outputs and raw cells are left out.

    Raises:
        IngestError: the text isn't a notebook.

    >>> notebook_to_markdown('{"cells": [{"cell_type": "code", "source": ["x = 1"]}], "metadata": {}}')
    '```python\nx = 1\n```'
    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise IngestError(f"not a notebook: {cause!s:.100}") from cause
    cells = list(_cells(notebook))
    if not cells:
        raise IngestError("not a notebook, or one without cells")
    language = _language(notebook)
    return "\n\n".join(part for cell in cells if (part := _markdown(cell, language)))


def _cells(notebook: object) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of a notebook; before version 4 they stand in worksheets."""
    if isinstance(notebook, dict):
        sheets = notebook.get("worksheets")
        for sheet in [notebook, *(sheets if isinstance(sheets, list) else [])]:
            cells = sheet.get("cells") if isinstance(sheet, dict) else None
            yield from (cell for cell in (cells if isinstance(cells, list) else []) if isinstance(cell, dict))


def _language(notebook: Mapping[str, Any]) -> str:
    about = notebook.get("metadata")
    for key in ("language_info", "kernelspec"):
        part = about.get(key) if isinstance(about, dict) else None
        name = (part.get("name" if key == "language_info" else "language") or "") if isinstance(part, dict) else ""
        if isinstance(name, str) and name.isidentifier():
            return name
    return "python"


def _markdown(cell: Mapping[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str)).strip("\n").rstrip()
    kind = cell.get("cell_type")
    if kind == "heading":  # before version 4
        level = cell.get("level")
        return f"{'#' * level if isinstance(level, int) and 1 <= level <= 6 else '#'} {text}" if text else ""
    if kind == "markdown":
        return close_fence(text)
    if kind != "code" or not text:
        return ""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
