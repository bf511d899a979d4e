"""An inverted index of the names and words of a dialogue's turns."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from meve.components.lexical.analyzers import content_words
from meve.types import Entity

NameWords: TypeAlias = Sequence[frozenset[str]]
"""The names in a text, in order, each as the set of its words."""


def extract_names(entities: Iterable[Entity]) -> NameWords:
    """Return the words of each name among the entities.

    >>> [sorted(name) for name in extract_names([Entity(kind="name", text="the Bay of Oslo", start=0)])]
    [['bay', 'oslo']]
    """
    names = (frozenset(content_words(entity.text)) for entity in entities if entity.kind == "name")
    return [words for words in names if words]


def join_names(names: NameWords) -> frozenset[str]:
    """Return all words of some names."""
    return frozenset[str]().union(*names)


def exclude_words(names: NameWords, words: Collection[str]) -> NameWords:
    """Remove words from names, and names that consist of nothing else."""
    return [rest for name in names if (rest := name.difference(words))]


def speaker_words(speakers: Iterable[str]) -> frozenset[str]:
    """Return the words of the speakers' names, which say nothing about a turn that addresses one of them."""
    return frozenset(word for speaker in speakers for word in content_words(speaker))


class NameIndex:
    """Names and words of passages in order. The index only grows, so readers pass the number of passages they know."""

    def __init__(self, names: Sequence[NameWords] = (), words: Sequence[frozenset[str]] = ()) -> None:
        self.names: list[NameWords] = []
        self.words: list[frozenset[str]] = []
        self._rows: dict[str, list[int]] = defaultdict(list)
        for passage_names, passage_words in zip(names, words, strict=True):
            self._add(passage_names, passage_words)

    def add(self, text: str, names: NameWords) -> None:
        """Append a passage with its names."""
        self._add(names, frozenset(content_words(text)) | join_names(names))

    def fork(self, count: int) -> "NameIndex":
        """Return a copy of the first `count` passages."""
        return NameIndex(self.names[:count], self.words[:count])

    def find_rows(self, word: str, count: int) -> list[int]:
        """Return the positions of those of the first `count` passages that contain a word, in order."""
        rows = self._rows.get(word, [])
        return rows[: bisect_left(rows, count)]

    def _add(self, names: NameWords, words: frozenset[str]) -> None:
        for word in words:
            self._rows[word].append(len(self.names))
        self.names.append(names)
        self.words.append(words)
