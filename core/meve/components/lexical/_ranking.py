"""Ranks texts for the posting lists of a query's terms, and reads long lists only as far as needed (MaxScore)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from meve.components.lexical._postings import Counts, Ints

Scores: TypeAlias = npt.NDArray[np.float64]

_DENSE = 3
"""With more postings than a third of the texts, summing in an array of all texts is faster than merging."""
_CLOSE = 1e-6
"""Scores within this relative distance may be equal as float32, so the cut-off treats them as ties."""
_LONG = 2
"""A list this many times longer than all rarer ones together is worth an attempt to skip most of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryTerm:
    """One term of a query, with its postings in live texts."""

    weight: float
    """The term's IDF times its number of occurrences in the query."""
    positions: Ints
    """The positions of texts with the term, ascending, shape (n,)."""
    counts: Counts
    """The number of occurrences at each position, shape (n,)."""

    def scores(self, norms: Scores, k1: float, chosen: npt.NDArray[np.intp] | slice = slice(None)) -> Scores:
        """Return the BM25 contribution to the chosen postings: weight · tf (k1 + 1) / (tf + norm)."""
        tf = self.counts[chosen].astype(np.float64)
        contribution: Scores = tf * (self.weight * (k1 + 1.0)) / (tf + norms[self.positions[chosen]])
        return contribution

    def max_score(self, least_norm: float, k1: float) -> float:
        """Return an upper bound of the contribution to any text."""
        tf = float(self.counts.max())
        return self.weight * tf * (k1 + 1.0) / (tf + least_norm)


def rank_texts(
    terms: Sequence[QueryTerm], k: int, *, norms: Scores, least: float, k1: float, mask: npt.NDArray[np.bool_] | None
) -> tuple[Ints, Scores]:
    """Return positions and scores that include the k best and all ties with the kth, unordered.

    Rarer terms come first. Once the kth best score exceeds what all remaining terms can add together, no text without a
    term read so far can be among the best. The remaining terms have the longest lists; they are then looked up only for
    the texts already found. Sums are always taken in the same order, so a score doesn't depend on the path.

    Args:
        terms: the query terms, each with at least one posting.
        k: how many texts are wanted, at least 1.
        norms: k1 (1 - b + b · length / mean length) of each position, shape (size,).
        least: the smallest norm.
        k1: BM25's k1.
        mask: which positions may be returned, shape (size,); None for all.

    Source: Turtle and Flood, Query Evaluation: Strategies and Optimizations (1995): MaxScore.
    """
    terms = sorted(terms, key=lambda term: -term.weight)
    parts: list[tuple[Ints, Scores]] = []
    read = 0
    for n, term in enumerate(terms):
        if parts and len(term.positions) > _LONG * read:
            rest = sum(other.max_score(least, k1) for other in terms[n:])
            ranked = _allowed(*sum_scores(parts, len(norms)), mask)
            if len(ranked[0]) >= k:
                cut_off = float(np.partition(ranked[1], -k)[-k]) * (1.0 - _CLOSE)
                if cut_off > rest:
                    return _completed(*ranked, terms[n:], cut_off - rest, norms, k1)
        parts.append((term.positions, term.scores(norms, k1)))
        read += len(term.positions)
    return _allowed(*sum_scores(parts, len(norms)), mask)


def _completed(
    positions: Ints, scores: Scores, terms: Sequence[QueryTerm], least: float, norms: Scores, k1: float
) -> tuple[Ints, Scores]:
    """Add the scores of the remaining terms to the texts that can still be among the best."""
    stay = scores >= least
    positions, scores = positions[stay], scores[stay].copy()
    for term in terms:
        at = np.searchsorted(term.positions, positions)
        at[at == len(term.positions)] = 0
        hit = term.positions[at] == positions
        scores[hit] += term.scores(norms, k1, at[hit])
    return positions, scores


def _allowed(positions: Ints, scores: Scores, mask: npt.NDArray[np.bool_] | None) -> tuple[Ints, Scores]:
    if mask is None:
        return positions, scores
    stay = mask[positions]
    return positions[stay], scores[stay]


def sum_scores(parts: Sequence[tuple[Ints, Scores]], size: int) -> tuple[Ints, Scores]:
    """Return the distinct positions of all parts, ascending, and their scores, summed in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    if sum(len(positions) for positions, _ in parts) * _DENSE > size:
        totals = np.zeros(size, dtype=np.float64)
        for positions, scores in parts:
            totals[positions] += scores
        positions = np.flatnonzero(totals).astype(np.int32)
        return positions, totals[positions]
    positions = np.concatenate([p for p, _ in parts])
    order = positions.argsort(kind="stable")  # a merge of ascending runs
    positions = positions[order]
    new = np.empty(len(positions), dtype=np.bool_)
    new[0] = True
    np.not_equal(positions[1:], positions[:-1], out=new[1:])
    sums = np.bincount(new.cumsum() - 1, weights=np.concatenate([s for _, s in parts])[order])
    return positions[new], sums.astype(np.float64, copy=False)
