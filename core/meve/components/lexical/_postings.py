"""Posting lists of BM25 in NumPy arrays: how often each term occurs at which position, in blocks that merge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int32]
Counts: TypeAlias = npt.NDArray[np.uint16]

MAX_COUNT = int(np.iinfo(np.uint16).max)
"""The highest count stored for a term in one text; BM25 is saturated long before."""
TAIL_TEXTS = 4096
"""Single texts are kept in a dictionary until there are this many, and then become a block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Postings sorted by term, then by position (compressed sparse rows)."""

    terms: Ints
    """The terms that occur, ascending, shape (t,)."""
    starts: npt.NDArray[np.int64]
    """The index of each term's first posting, and the end of the last, shape (t + 1,)."""
    positions: Ints
    """The position of each posting's text, shape (p,)."""
    counts: Counts
    """The number of occurrences of the term at each position, shape (p,)."""

    @classmethod
    def from_words(cls, terms: Ints, positions: Ints) -> Self:
        """Build a block from one (term, position) entry per word, shapes (w,), in any order."""
        first = int(positions.min()) if len(positions) else 0
        span = int(positions.max()) - first + 1 if len(positions) else 1
        keys, counts = np.unique(terms.astype(np.int64) * span + (positions - first), return_counts=True)
        return cls._sorted(keys // span, keys % span + first, np.minimum(counts, MAX_COUNT))

    @classmethod
    def _sorted(
        cls, terms: npt.NDArray[np.integer], positions: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]
    ) -> Self:
        begins = np.flatnonzero(np.diff(terms, prepend=-1))
        return cls(
            terms=terms[begins].astype(np.int32),
            starts=np.append(begins, len(terms)).astype(np.int64),
            positions=positions.astype(np.int32),
            counts=counts.astype(np.uint16),
        )

    def __len__(self) -> int:
        return len(self.positions)

    def lookup(self, term: int) -> tuple[Ints, Counts]:
        """Return the positions and counts of one term, both of shape (n,), as views."""
        place = int(self.terms.searchsorted(np.int32(term)))  # another type would copy all terms
        if place == len(self.terms) or self.terms[place] != term:
            return self.positions[:0], self.counts[:0]
        part = slice(self.starts[place], self.starts[place + 1])
        return self.positions[part], self.counts[part]

    def renumber(self, alive: npt.NDArray[np.bool_], renumbered: Ints) -> Self:
        """Return a block without the postings of dead positions, with the new position numbers."""
        stay = alive[self.positions]
        terms = np.repeat(self.terms, np.diff(self.starts))[stay]
        return self._sorted(terms, renumbered[self.positions[stay]], self.counts[stay])


def merge(blocks: Sequence[Block]) -> Block:
    """Merge blocks whose positions ascend from block to block. Linear in the number of postings."""
    terms = np.unique(np.concatenate([block.terms for block in blocks]))
    places = [np.searchsorted(terms, block.terms) for block in blocks]
    sizes = np.zeros(len(terms), dtype=np.int64)
    for block, place in zip(blocks, places, strict=True):
        sizes[place] += np.diff(block.starts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.empty(starts[-1], dtype=np.int32)
    counts = np.empty(starts[-1], dtype=np.uint16)
    free = starts[:-1].copy()
    for block, place in zip(blocks, places, strict=True):
        lengths = np.diff(block.starts)
        target = np.repeat(free[place] - block.starts[:-1], lengths) + np.arange(len(block))
        positions[target] = block.positions
        counts[target] = block.counts
        free[place] += lengths
    return Block(terms=terms, starts=starts, positions=positions, counts=counts)


class _Tail:
    def __init__(self) -> None:
        self.texts = 0
        self.postings: dict[int, list[tuple[int, int]]] = {}

    def blocks(self) -> Iterator[Block]:
        if self.postings:
            flat = [(term, *posting) for term in sorted(self.postings) for posting in self.postings[term]]
            terms, positions, counts = np.array(flat, dtype=np.int64).T
            yield Block._sorted(terms, positions, counts)


class Postings:
    """Posting lists: blocks of falling size, each at least twice the next, and a tail of single texts.

    A posting is copied about log2(corpus / tail) times in all, so adds stay cheap on average. The rare add that merges
    everything takes about 10 ns a posting. A term is looked up in each of the few blocks.

    An interrupted append keeps all earlier postings, once each, and possibly some of the new. Callers must therefore
    never reuse a position.
    """

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self._parts = tuple(blocks), _Tail()

    def lookup(self, term: int) -> tuple[Ints, Counts]:
        """Return the positions of a term, ascending, and its counts there, both of shape (n,)."""
        blocks, tail = self._parts
        parts = [part for block in blocks if len((part := block.lookup(term))[0])]
        if late := tail.postings.get(term):
            array = np.array(late, dtype=np.int64)
            parts.append((array[:, 0].astype(np.int32), array[:, 1].astype(np.uint16)))
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16)
        return np.concatenate([p for p, _ in parts]), np.concatenate([c for _, c in parts])

    def append_text(self, position: int, terms: Sequence[int]) -> None:
        """Add one text at the next position."""
        counts: dict[int, int] = {}
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
        tail = self._parts[1]
        tail.texts += 1
        for term, count in counts.items():
            tail.postings.setdefault(term, []).append((position, min(count, MAX_COUNT)))
        if tail.texts >= TAIL_TEXTS:
            self.append_blocks([])

    def append_blocks(self, blocks: Sequence[Block]) -> None:
        """Add blocks of texts at the next positions."""
        previous, tail = self._parts
        blocks = _append_blocks(_append_blocks(previous, list(tail.blocks())), blocks)
        self._parts = blocks, _Tail()

    def merge_all(self) -> Block:
        """Return all postings as one block, without changing anything."""
        blocks, tail = self._parts
        every = [*blocks, *tail.blocks()]
        return merge(every) if every else EMPTY


def _append_blocks(blocks: Sequence[Block], more: Sequence[Block]) -> tuple[Block, ...]:
    """Append blocks, and merge from the end until each block is again at least twice the next."""
    kept, merging = list(blocks), [block for block in more if len(block)]
    while merging and kept and len(kept[-1]) < 2 * sum(map(len, merging)):
        merging.insert(0, kept.pop())
    return (*kept, merge(merging)) if len(merging) > 1 else (*kept, *merging)


EMPTY = Block.from_words(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
"""A block without postings."""
