"""Determines the kind of a file by its name; the content is checked when the file is read."""

from pathlib import PurePosixPath
from typing import Literal

FileKind = Literal["text", "markdown", "html", "rst", "code", "jsonl", "notebook", "pdf", "docx", "mail"]

SUFFIXES: dict[str, FileKind] = {
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
    ".ipynb": "notebook",
    ".pdf": "pdf",
    ".docx": "docx",
    ".eml": "mail",
}
"""The file kind of each suffix with a structure of its own."""

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
"""The tree-sitter grammar of each source code suffix."""


def find_kind(name: str) -> FileKind:
    """Return the kind of a file by its name; plain text if the suffix is unknown.

    >>> find_kind("guide/install.md"), find_kind("setup.py"), find_kind("LICENSE")
    ('markdown', 'code', 'text')
    """
    suffix = PurePosixPath(name).suffix.lower()
    return SUFFIXES.get(suffix, "code" if suffix in LANGUAGES else "text")


def find_language(name: str) -> str | None:
    """Return the grammar for a file's name, or None."""
    return LANGUAGES.get(PurePosixPath(name).suffix.lower())
