"""Finds dates in many languages with dateparser: https://dateparser.readthedocs.io (BSD licence)."""

from collections.abc import Sequence

from meve._extras import require_imports
from meve._fork_safety import ForkSafeLock
from meve.components.lexical.analyzers import FUNCTION_WORDS, words
from meve.errors import ModelError, wrap_errors
from meve.types import Entity

_AMBIGUOUS = frozenset("may march mar sun sat mon second now".split())  # noqa: SIM905 - eight words, one line


class DateEntities:
    """Finds dates that dateparser understands. Threads may share it, and take turns.

    A text takes some milliseconds in a known language, and about fifty where the language must be detected.

    Args:
        languages: two-letter language codes, such as `["en", "de"]`; None to detect the language of each text.

    Raises:
        MissingExtraError: dateparser isn't installed.
    """

    name = "dates"

    def __init__(self, languages: Sequence[str] | None = ("en",)) -> None:
        with require_imports("finding dates in many languages", {"dateparser": "dates"}):
            from dateparser.search import search_dates
        self._search = search_dates
        self._languages = None if languages is None else list(languages)
        self._lock = ForkSafeLock()

    def detect(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the dates of each text, in the order given; a month alone is none, since `may` is a word too.

        Raises:
            ModelError: dateparser failed.
        """
        with self._lock, wrap_errors(ModelError, f"finding dates in {len(texts)} texts"):
            return [self._detect_one(text) for text in texts]

    def _detect_one(self, text: str) -> tuple[Entity, ...]:
        matches = self._search(text, languages=self._languages) if text.strip() else None
        entities: list[Entity] = []
        at = 0
        for phrase, _ in matches or ():
            start = text.find(phrase, at)
            if start >= 0 and _is_certain(phrase):
                entities.append(Entity(kind="date", text=phrase, start=start))
                at = start + len(phrase)
        return tuple(entities)


def _is_certain(phrase: str) -> bool:
    """Return whether a phrase is surely a date: no bare number but a year, no word with a more common meaning."""
    if phrase.isdigit():
        return len(phrase) == 4
    return any(sign.isdigit() for sign in phrase) or not set(words(phrase)) <= _AMBIGUOUS | FUNCTION_WORDS
