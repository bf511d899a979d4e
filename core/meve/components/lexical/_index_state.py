"""What a `Bm25Index` holds, in one piece that can be put in the place of another."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from meve._growable_array import GrowableArray
from meve.components._row_ids import RowMap
from meve.components.lexical._postings import Block, Ints, Postings
from meve.components.lexical._ranking import Scores
from meve.types import RowArray


class Vocabulary(dict[str, int]):
    """Gives a word that it doesn't know the next number, when asked with []."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """Texts, in one piece, so that one assignment puts others in their place."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    """More words than there are, perhaps: of texts that are gone, or never came."""
    postings: Postings = field(default_factory=Postings)
    """More than there are, perhaps; those of positions that aren't alive don't count."""
    rows: RowMap = field(default_factory=RowMap)
    lengths: GrowableArray[np.int32] = field(default_factory=lambda: GrowableArray(np.empty(0, dtype=np.int32)))
    """The number of words at each position, and perhaps some more at the end."""
    norms: tuple[Scores, float] | None = None
    """What a term's count is weighed against at each position, shape (size,), and the least; None after a change."""


def held_of(rows: RowArray, lengths: Ints, block: Block, words: Sequence[str]) -> Held:
    """From the row keys and the lengths of the texts, their postings, and the word of each term."""
    return Held(
        vocabulary=Vocabulary((word, number) for number, word in enumerate(words)),
        postings=Postings([block] if len(block) else []),
        rows=RowMap(rows),
        lengths=GrowableArray(lengths),
    )
