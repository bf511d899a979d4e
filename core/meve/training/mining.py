"""Passages that share words with a query and don't answer it: what a verifier must learn to turn down."""

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from meve.components.lexical.bm25 import Bm25Index
from meve.types import LabelledPair

NEGATIVES = 3
DEPTH = 40


class Miner:
    """Draws negatives from texts.

    Args:
        texts: to draw from.
        rng: decides which.
    """

    def __init__(self, texts: Sequence[str], rng: random.Random) -> None:
        self.texts = texts
        self._rng = rng
        self._index = Bm25Index()
        self._index.add(np.arange(len(texts)), list(texts))

    def hits(self, query: str, k: int) -> Iterator[int]:
        """The rows of the k best by BM25, best first."""
        rows, _ = self._index.search(query, k)
        yield from rows.tolist()

    def drawn(self, query: str, count: int, allowed: Callable[[int], bool], depth: int = DEPTH) -> list[int]:
        """So many rows that are allowed: of the upper half of the `depth` best by BM25, random ones for those missing.

        Fewer where the texts don't have so many.
        """
        found = [row for row in self.hits(query, depth) if allowed(row)]
        upper = found[: max(count, len(found) // 2)]
        chosen = self._rng.sample(upper, min(count, len(upper)))
        for _ in range(20 * count):
            if len(chosen) >= count:
                break
            row = self._rng.randrange(len(self.texts))
            if row not in chosen and allowed(row):
                chosen.append(row)
        return chosen


def with_negatives(pairs: Sequence[LabelledPair], *, count: int = NEGATIVES, seed: int = 0) -> list[LabelledPair]:
    """The pairs, and for each query with fewer than `count` passages that don't answer, some that BM25 finds.

    They are drawn from the passages of other queries; one that is labelled relevant to the query is never taken. Where
    passages of other queries answer too, label them, or they teach the wrong thing.

    Args:
        pairs: relevant ones, and others where there are any.
        count: how many a query should have.
        seed: of the draws.
    """
    labelled: dict[str, dict[str, bool]] = {}
    for pair in pairs:
        labelled.setdefault(pair.query, {})[pair.passage] = pair.relevant
    texts = sorted({pair.passage for pair in pairs})
    miner = Miner(texts, random.Random(seed))
    made = list(pairs)
    for query, known in labelled.items():
        missing = count - sum(not relevant for relevant in known.values())
        if missing > 0 and any(known.values()):
            rows = miner.drawn(query, missing, lambda row, known=known: texts[row] not in known)  # type: ignore[misc]
            made += [LabelledPair(query=query, passage=texts[row], relevant=False) for row in rows]
    return made
