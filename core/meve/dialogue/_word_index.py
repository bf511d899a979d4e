"""Which turns hold what: the names of each, its words, and where a word stands."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from meve.components.lexical.analyzers import content_words
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


class WordIndex:
    """Names and words of pieces, in order; it only ever grows, so whoever reads it says how many pieces he knows."""

    def __init__(self, names: Sequence[Names] = (), words: Sequence[frozenset[str]] = ()) -> None:
        self.names: list[Names] = []
        self.words: list[frozenset[str]] = []
        self._rows: dict[str, list[int]] = defaultdict(list)
        for mine, all_of_it in zip(names, words, strict=True):
            self._add(mine, all_of_it)

    def add(self, text: str, names: Names) -> None:
        """One piece more, and what it names."""
        self._add(names, frozenset(content_words(text)) | words_of(names))

    def fork(self, count: int) -> "WordIndex":
        """Another, of the first so many pieces."""
        return WordIndex(self.names[:count], self.words[:count])

    def holding(self, word: str, count: int) -> list[int]:
        """Which of so many pieces hold a word, in order."""
        rows = self._rows.get(word, [])
        return rows[: bisect_left(rows, count)]

    def _add(self, names: Names, words: frozenset[str]) -> None:
        for word in words:
            self._rows[word].append(len(self.names))
        self.names.append(names)
        self.words.append(words)
