"""Mines hard negatives: passages that share words with a query and don't answer it."""

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
        texts: the texts to draw from.
        rng: the source of randomness.
    """

    def __init__(self, texts: Sequence[str], rng: random.Random) -> None:
        self.texts = texts
        self._rng = rng
        self._index = Bm25Index()
        self._index.add(np.arange(len(texts)), list(texts))

    def search(self, query: str, k: int) -> Iterator[int]:
        """Yield the rows of the k best texts by BM25, best first."""
        rows, _ = self._index.search(query, k)
        yield from rows.tolist()

    def draw(self, query: str, count: int, allowed: Callable[[int], bool], depth: int = DEPTH) -> list[int]:
        """Draw `count` allowed rows from the upper half of the `depth` best by BM25, then at random.

        Returns fewer where the texts hold fewer allowed rows.
        """
        hits = [row for row in self.search(query, depth) if allowed(row)]
        upper = hits[: max(count, len(hits) // 2)]
        chosen = self._rng.sample(upper, min(count, len(upper)))
        for _ in range(20 * count):
            if len(chosen) >= count:
                break
            row = self._rng.randrange(len(self.texts))
            if row not in chosen and allowed(row):
                chosen.append(row)
        return chosen


def add_negatives(pairs: Sequence[LabelledPair], *, count: int = NEGATIVES, seed: int = 0) -> list[LabelledPair]:
    """Add mined negatives to each query that has fewer than `count` irrelevant passages.

    They are drawn from the passages of other queries; a passage labelled relevant to the query is never drawn. Label
    passages of other queries that answer the query too, or they become wrong negatives.

    Args:
        pairs: relevant ones, and irrelevant ones where there are any.
        count: how many negatives each query should have.
        seed: the seed of the draws.
    """
    labelled: dict[str, dict[str, bool]] = {}
    for pair in pairs:
        labelled.setdefault(pair.query, {})[pair.passage] = pair.relevant
    texts = sorted({pair.passage for pair in pairs})
    miner = Miner(texts, random.Random(seed))
    result = list(pairs)
    for query, labels in labelled.items():
        missing = count - sum(not relevant for relevant in labels.values())
        if missing > 0 and any(labels.values()):
            rows = miner.draw(query, missing, lambda row, labels=labels: texts[row] not in labels)  # type: ignore[misc]
            result += [LabelledPair(query=query, passage=texts[row], relevant=False) for row in rows]
    return result
