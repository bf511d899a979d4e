"""Which turns name what: the names of each, and where a word of them stands."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from meve.parts.lexical.analyzers import content_words
from meve.types import Entity

Names: TypeAlias = Sequence[frozenset[str]]
"""Of some text the names, in order, each as its words."""


def names_of(entities: Iterable[Entity]) -> Names:
    """The words of each name among entities.

    >>> [sorted(name) for name in names_of([Entity(kind="name", text="the Bay of Oslo", start=0)])]
    [['bay', 'oslo']]
    """
    found = (frozenset(content_words(entity.text)) for entity in entities if entity.kind == "name")
    return [words for words in found if words]


def words_of(names: Names) -> frozenset[str]:
    """All words of some names."""
    return frozenset[str]().union(*names)


def without(names: Names, words: Collection[str]) -> Names:
    """Names without some words; those that were nothing else are gone."""
    return [rest for name in names if (rest := name.difference(words))]


def spoken(speakers: Iterable[str]) -> frozenset[str]:
    """The words of the names of those who talk: they are in what is said to them, and tell nothing."""
    return frozenset(word for speaker in speakers for word in content_words(speaker))


class NameIndex:
    """The names of pieces, in their order; it only ever grows, so whoever reads it says how many pieces he knows."""

    def __init__(self, names: Iterable[Names] = ()) -> None:
        self.names: list[Names] = []
        self._rows: dict[str, list[int]] = defaultdict(list)
        for each in names:
            self.add(each)

    def add(self, names: Names) -> None:
        """Those of one piece more."""
        for word in words_of(names):
            self._rows[word].append(len(self.names))
        self.names.append(names)

    def holding(self, word: str, count: int) -> list[int]:
        """Which of so many pieces hold a word among their names, in order."""
        rows = self._rows.get(word, [])
        return rows[: bisect_left(rows, count)]
