"""The words of a user's records, by which a search finds them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from meve._formulas import bm25_idf
from meve.components.lexical.analyzers import stemmed_words
from meve.components.lexical.bm25 import Bm25Index
from meve.memory._passages import MAX_PASSAGES, texts_of
from meve.memory._recall.word_frequencies import word_frequencies
from meve.memory.records import MemoryRecord
from meve.types import RowArray

LEAST = 3.0
"""The least number of rare words that a question counts as having. "How old is my daughter?" has two words."""
ELSEWHERE = 100
"""Texts outside of the memory in which a word's rarity counts, too: in a small memory, "old" may stand only once."""


class WordIndex:
    """Scores records by position. Not thread-safe: the lock of the user's index guards it."""

    def __init__(self) -> None:
        self._texts = _MemoryTexts(analyzer=stemmed_words)
        """A text of the record at position p has a row from p * MAX_PASSAGES on."""
        self._counts: dict[int, int] = {}
        """The number of texts of each record that has several."""

    def add(self, first: int, records: Sequence[MemoryRecord]) -> None:
        """Add records at positions from `first` on."""
        texts = [keywords(record) for record in records]
        self._counts.update((n, len(each)) for n, each in enumerate(texts, first) if len(each) > 1)
        self._texts.add(self._rows(range(first, first + len(texts))), [text for each in texts for text in each])

    def remove(self, positions: Sequence[int]) -> None:
        """Remove the records at these positions."""
        self._texts.remove(self._rows(positions))
        for n in positions:
            self._counts.pop(n, None)

    def shares(self, query: str, n: int) -> npt.NDArray[np.float64]:
        """Return the share of the query's words in each of n records, weighted by rarity; of several texts the best's.

        Shape (n,), at least 0.
        """
        shares = np.zeros(n)
        rows, of_texts = self._texts.score_shares(query, LEAST)
        if self._counts:
            np.maximum.at(shares, rows // MAX_PASSAGES, of_texts)
        else:
            shares[rows // MAX_PASSAGES] = of_texts
        return shares

    def word_counter(self, admitted: Callable[[], npt.NDArray[np.bool_]]) -> Callable[[str], int]:
        """Return a function that tells in how many texts of the admitted records a word in lower case stands.

        Args:
            admitted: returns which positions hold such a record, shape (n,); called at most once, for a known word.
        """
        count, mask = self._texts.word_counter(), cache(admitted)

        def count_texts(word: str) -> int:
            if count is None or not count(word):
                return 0
            return int(np.count_nonzero(mask()[self._texts.score_shares(word)[0] // MAX_PASSAGES]))

        return count_texts

    def _rows(self, positions: Iterable[int]) -> RowArray:
        return np.array(
            [n * MAX_PASSAGES + part for n in positions for part in range(self._counts.get(n, 1))], dtype=np.int64
        )


class _MemoryTexts(Bm25Index):
    """An index in which common words of English weigh less than rare ones that stand in as many memories."""

    def _rarities(self, counts: Mapping[str, int]) -> npt.NDArray[np.float64]:
        frequencies = word_frequencies()
        containing = [count + ELSEWHERE * frequencies.get(word, 0.0) for word, count in counts.items()]
        return bm25_idf(np.array(containing), len(self) + ELSEWHERE)


def keywords(record: MemoryRecord) -> list[str]:
    """Return the words by which a record is found, by text: the text, the record's tags, and its creation date."""
    about = f"{' '.join(record.tags)} {record.created_at:%d %B %Y %A}"
    return [f"{text} {about}" for text in texts_of(record)]
