"""Warn once if an English verifier is given text in another language."""

from meve.components._language import find_foreign_language
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.errors import LanguageWarning, warn
from meve.pipeline.context import Context

MOST_READ = 8
"""The most passages of a context that are looked at."""


def warn_of_language(context: Context, verifier: str, warned: set[str]) -> None:
    """Warn if the question or most passages of a context aren't English, and the verifier is the one that ships.

    Args:
        context: the result of a retrieval.
        verifier: the verifier's name.
        warned: what was warned of before; extended.
    """
    if verifier != SHIPPED_VERIFIER or LanguageWarning.__name__ in warned:
        return
    what, language = "question seems", find_foreign_language(context.query)
    if language is None:
        read = context.passages[:MOST_READ]
        found = [each for p in read if (each := find_foreign_language(p.passage.text))]
        what, language = "passages seem", found[0] if 2 * len(found) > len(read) else None
    if language is None:
        return
    warned.add(LanguageWarning.__name__)
    warn(
        f"the {what} to be {language}, but {verifier} reads English: give multilingual models, such as "
        "verifier='BAAI/bge-reranker-v2-m3' and embedder='BAAI/bge-m3' (docs/rerankers.md)",
        LanguageWarning,
        stacklevel=5,
    )
