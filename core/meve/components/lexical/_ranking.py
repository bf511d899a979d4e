"""From the postings of a query's terms to the texts that score best, reading the long ones only as far as needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from meve.components.lexical._postings import Counts, Ints

Scores: TypeAlias = npt.NDArray[np.float64]

_DENSE = 3
"""With more postings than a third of the texts, adding up in an array of all texts beats merging."""
_CLOSE = 1e-6
"""Scores within this share of each other may be equal as float32, and are never told apart here."""
_LONG = 2
"""A term with so many times the postings of all rarer ones is worth the try to do without most of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """One term of a query, with its live postings."""

    weight: float
    """Its IDF, times how often the query has it."""
    positions: Ints
    """Where it stands, ascending, shape (n,)."""
    counts: Counts
    """How often, shape (n,)."""

    def scores(self, norms: Scores, k1: float, chosen: npt.NDArray[np.intp] | slice = slice(None)) -> Scores:
        """What it adds to the texts of the chosen postings: weight · tf (k1 + 1) / (tf + norm)."""
        tf = self.counts[chosen].astype(np.float64)
        made: Scores = tf * (self.weight * (k1 + 1.0)) / (tf + norms[self.positions[chosen]])
        return made

    def bound(self, least_norm: float, k1: float) -> float:
        """The most that it can add to any text."""
        tf = float(self.counts.max())
        return self.weight * tf * (k1 + 1.0) / (tf + least_norm)


def ranked(
    terms: Sequence[Asked], k: int, *, norms: Scores, least: float, k1: float, mask: npt.NDArray[np.bool_] | None
) -> tuple[Ints, Scores]:
    """Positions and scores among which the k best are, those that tie with the kth included; in no order.

    Rarer terms come first. Once the kth best of the texts that hold them scores more than all other terms together can
    add, no text without them can get among the best, and the others, which have the most postings, are only looked up
    for the texts found. What a text scores doesn't depend on the way: sums are taken in the same order.

    Args:
        terms: each with a posting at least.
        k: how many are wanted, at least 1.
        norms: k1 (1 - b + b · length / mean length) of each position, shape (size,).
        least: the smallest norm.
        k1: BM25's.
        mask: which positions may be found, shape (size,); None for all.

    Source: Turtle and Flood, Query Evaluation: Strategies and Optimizations (1995): MaxScore.
    """
    terms = sorted(terms, key=lambda term: -term.weight)
    parts: list[tuple[Ints, Scores]] = []
    read = 0
    for n, term in enumerate(terms):
        if parts and len(term.positions) > _LONG * read:
            rest = sum(other.bound(least, k1) for other in terms[n:])
            found = _allowed(*summed(parts, len(norms)), mask)
            if len(found[0]) >= k:
                bar = float(np.partition(found[1], -k)[-k]) * (1.0 - _CLOSE)
                if bar > rest:
                    return _completed(*found, terms[n:], bar - rest, norms, k1)
        parts.append((term.positions, term.scores(norms, k1)))
        read += len(term.positions)
    return _allowed(*summed(parts, len(norms)), mask)


def _completed(
    positions: Ints, scores: Scores, terms: Sequence[Asked], least: float, norms: Scores, k1: float
) -> tuple[Ints, Scores]:
    """Add what the remaining terms give to the texts that can still be among the best."""
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


def summed(parts: Sequence[tuple[Ints, Scores]], size: int) -> tuple[Ints, Scores]:
    """The positions of all parts, each once, ascending, and the sums of their scores in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    if sum(len(positions) for positions, _ in parts) * _DENSE > size:
        totals = np.zeros(size, dtype=np.float64)
        for positions, scores in parts:
            totals[positions] += scores
        found = np.flatnonzero(totals).astype(np.int32)
        return found, totals[found]
    positions = np.concatenate([p for p, _ in parts])
    order = positions.argsort(kind="stable")  # ascending runs, which it only has to merge
    positions = positions[order]
    new = np.empty(len(positions), dtype=np.bool_)
    new[0] = True
    np.not_equal(positions[1:], positions[:-1], out=new[1:])
    sums = np.bincount(new.cumsum() - 1, weights=np.concatenate([s for _, s in parts])[order])
    return positions[new], sums.astype(np.float64, copy=False)
