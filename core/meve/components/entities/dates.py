"""Dates in many languages, by dateparser: https://dateparser.readthedocs.io (BSD licence, extra `dates`)."""

import threading
from collections.abc import Sequence

from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.errors import ModelError, wrap_errors, missing_extra
from meve.types import Entity

_WORDS_TOO = frozenset("may march mar sun sat mon second now".split())  # noqa: SIM905 - eight words, one line


class DateEntities:
    """Finds dates that dateparser understands. Threads may share one, and take turns.

    It takes some milliseconds a text in one language, and some fifty where it must find out the language.

    Args:
        languages: two-letter codes of those that are spoken, such as `["en", "de"]`; None to find out for each text.

    Raises:
        MissingExtraError: dateparser isn't installed.
    """

    name = "dates"

    def __init__(self, languages: Sequence[str] | None = ("en",)) -> None:
        try:
            from dateparser.search import search_dates
        except ImportError as cause:
            raise missing_extra("dateparser", "dates", "finding dates in many languages") from cause
        self._search = search_dates
        self._languages = None if languages is None else list(languages)
        self._turn = threading.Lock()

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """The dates of each text, in the order given. A month alone is none, since `may` and `march` are words too.

        Raises:
            ModelError: dateparser failed.
        """
        with self._turn, wrap_errors(ModelError, f"finding dates in {len(texts)} texts"):
            return [self._of(text) for text in texts]

    def _of(self, text: str) -> tuple[Entity, ...]:
        found = self._search(text, languages=self._languages) if text.strip() else None
        made: list[Entity] = []
        at = 0
        for said, _ in found or ():
            start = text.find(said, at)
            if start >= 0 and _tells(said):
                made.append(Entity(kind="date", text=said, start=start))
                at = start + len(said)
        return tuple(made)


def _tells(said: str) -> bool:
    """Whether what was found is a date beyond doubt: no bare number but a year, no word that mostly means else."""
    if said.isdigit():
        return len(said) == 4
    return any(sign.isdigit() for sign in said) or not set(words(said)) <= _WORDS_TOO | FUNCTION_WORDS
