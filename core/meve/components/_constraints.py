"""Finds what a question names and no passage of the context holds: numbers, dates and names."""

from collections.abc import Sequence

from meve.components.entities.patterns import PatternEntities
from meve.components.lexical.analyzers import content_words, words
from meve.types import Entity

KINDS = ("date", "quantity", "name")

_PATTERNS = PatternEntities()


def find_missing(question: str, texts: Sequence[str]) -> list[Entity]:
    """Return the numbers, dates and names of a question of which no text holds all words, in singular or plural.

    >>> [each.text for each in find_missing("Did Ada Byron live in Bonn in 1843?", ["Ada Byron lived in London."])]
    ['Bonn', '1843']
    >>> find_missing("Is it open on Friday?", ["On Fridays it is open."])
    []
    """
    (found,) = _PATTERNS.detect([question])
    held = [set(map(_singular, words(text))) for text in texts]
    wanted = [(each, set(map(_singular, content_words(each.text)))) for each in found if each.kind in KINDS]
    return [each for each, named in wanted if named and not any(named <= text for text in held)]


def _singular(word: str) -> str:
    """Return a word without a plural's ending: `fridays` as `friday`."""
    return word.removesuffix("s")
