"""Which kind of file is this? Told by its name alone; what it holds is checked when it is read."""

from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["text", "markdown", "html", "rst", "code", "jsonl"]

SUFFIXES: dict[str, Kind] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".rst": "rst",
    ".rest": "rst",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Suffixes of the kinds with a structure of their own."""

LANGUAGES: dict[str, str] = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".sh": "bash",
    ".bash": "bash",
    ".c": "c",
    ".h": "c",
    ".cs": "c_sharp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".go": "go",
    ".java": "java",
    ".cjs": "javascript",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".rb": "ruby",
    ".rs": "rust",
    ".cts": "typescript",
    ".mts": "typescript",
    ".ts": "typescript",
    ".tsx": "tsx",
}
"""Suffixes of source code that a tree-sitter grammar exists for here, with the grammar's name."""


def kind_of(name: str) -> Kind:
    """The kind of a file, by its name. What nothing else is known of is plain text.

    >>> kind_of("guide/install.md"), kind_of("setup.py"), kind_of("LICENSE")
    ('markdown', 'code', 'text')
    """
    suffix = PurePosixPath(name).suffix.lower()
    return SUFFIXES.get(suffix, "code" if suffix in LANGUAGES else "text")


def language_of(name: str) -> str | None:
    """The grammar that fits a file's name, or None."""
    return LANGUAGES.get(PurePosixPath(name).suffix.lower())
