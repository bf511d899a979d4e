"""The content of a `Bm25Index`, as one object that can be replaced in one assignment."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from meve._growable_array import GrowableArray
from meve.components._row_map import RowMap
from meve.components.lexical._postings import Block, Ints, Postings
from meve.components.lexical._ranking import Scores
from meve.types import RowArray


class Vocabulary(dict[str, int]):
    """Numbers words: an unknown word gets the next number when looked up with []."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(slots=True, eq=False, kw_only=True)
class Norms:
    """Norms and kept scores of an index. A change of the index discards them."""

    values: Scores
    """The BM25 length norm at each position, shape (size,)."""
    least: float
    """The smallest norm."""
    scored: dict[tuple[str, int], tuple[float, Ints, Scores]] = field(default_factory=dict)
    """By word of a query and how often that repeats it: weight, positions, and the contribution to each of them."""
    postings: int = 0
    """The number of positions in `scored`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Bm25State:
    """The texts of an index: vocabulary, posting lists, row keys and lengths."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    """The number of each word; may hold words of removed texts and of failed adds."""
    postings: Postings = field(default_factory=Postings)
    """The posting lists; postings at positions that aren't alive don't count."""
    rows: RowMap = field(default_factory=RowMap)
    lengths: GrowableArray[np.int32] = field(default_factory=lambda: GrowableArray(np.empty(0, dtype=np.int32)))
    """The number of words at each position; may be longer than `rows`."""
    norms: Norms | None = None
    """None after a change."""


def build_state(rows: RowArray, lengths: Ints, block: Block, words: Sequence[str]) -> Bm25State:
    """Build the state from row keys, text lengths, postings and the word of each term."""
    return Bm25State(
        vocabulary=Vocabulary((word, number) for number, word in enumerate(words)),
        postings=Postings([block] if len(block) else []),
        rows=RowMap(rows),
        lengths=GrowableArray(lengths),
    )
