"""Loads the tree-sitter grammars for splitting source code, on first use."""

from functools import cache
from typing import Any

from meve.errors import IngestError, wrap_errors


@cache
def load_grammar(language: str) -> Any | None:  # noqa: ANN401 - a capsule, which has no type
    """Return the grammar of a language, or None if it isn't installed.

    Args:
        language: as in `meve.ingest._file_kinds.LANGUAGES`.
    """
    from importlib import import_module
    from importlib.util import find_spec

    module, function = language, "language"
    if language in {"typescript", "tsx"}:
        module, function = "typescript", f"language_{language}"
    if find_spec(f"tree_sitter_{module}") is None:
        return None
    with wrap_errors(IngestError, f"loading the grammar of {language}"):
        return getattr(import_module(f"tree_sitter_{module}"), function)()
