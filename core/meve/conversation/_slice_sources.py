"""Sources of turns for the retrieval phase that search one slice and nothing else."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.components.lexical.bm25 import Bm25Index
from meve.conversation._turn_passages import PlacedPassage
from meve.errors import ConfigurationError
from meve.pipeline.config import RetrieverConfig
from meve.ports import Source
from meve.types import Candidate, FloatArray, Query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SliceTurns:
    """The turns of a slice that can be searched: those with text."""

    rows: npt.NDArray[np.int64]
    """Their positions in the conversation, in order; shape (m,)."""
    positions: Mapping[str, int]
    """The position of each turn of the conversation by its id."""
    passages: Sequence[PlacedPassage | None]
    """All turns of the conversation as passages; None for those without text."""
    vectors: FloatArray
    """The embeddings of all turns, of length 1 or 0; shape (n, d)."""
    index: Bm25Index
    """The words of all turns, by position."""
    lock: AbstractContextManager[object]
    """Held while the words are searched, since other threads add turns."""

    def make_candidates(
        self, rows: npt.NDArray[np.int64], scores: npt.NDArray[np.floating], name: str
    ) -> list[Candidate]:
        """Return candidates with their vectors."""
        return [
            Candidate(passage=passage, origin=name, scores={name: score}, vector=self.vectors[row], place=-row)
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
            if (passage := self.passages[row]) is not None
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestTurns:
    """Retrieves the turns of a slice that are nearest to the question."""

    turns: SliceTurns
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates, best first, of equal ones the latest.

        Raises:
            ConfigurationError: the query has no vector.
        """
        if query.vector is None:
            raise ConfigurationError("the query has no vector, and a slice is searched by vector: set embedder")
        rows = self.turns.rows[::-1]
        near = self.turns.vectors[rows] @ normalize(query.vector)
        best = np.argsort(-near, kind="stable")[:k]
        return self.turns.make_candidates(rows[best], near[best], self.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatestTurns:
    """Retrieves the turns of a slice that are nearest to the anchor in time, whatever they say."""

    turns: SliceTurns
    anchor: int
    """The position of the anchor."""
    name: str = "latest"

    def search(self, query: Query, k: int) -> list[Candidate]:  # noqa: ARG002
        """Return at most k candidates, the nearest to the anchor first."""
        gaps = np.abs(self.turns.rows - self.anchor)
        best = np.argsort(gaps, kind="stable")[: max(1, k // 4)]
        return self.turns.make_candidates(self.turns.rows[best], 1 / (1 + gaps[best]), self.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnsWithWords:
    """Retrieves the turns of a slice that share words with the question."""

    turns: SliceTurns
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates, best first."""
        with self.turns.lock:
            rows, scores = self.turns.index.search(query.text, k, self.turns.rows)
        return self.turns.make_candidates(rows, scores, self.name)

    def score_ids(self, query: Query, ids: Sequence[str]) -> dict[str, float]:
        """Return the keyword scores of turns of the slice by id, 0 for those that share no word with the query."""
        wanted = {self.turns.positions[i]: i for i in ids if i in self.turns.positions}
        with self.turns.lock:
            found, scores = self.turns.index.search(query.text, len(wanted), np.array(sorted(wanted), dtype=np.int64))
        by_row = dict.fromkeys(wanted, 0.0) | dict(zip(found.tolist(), scores.tolist(), strict=True))
        return {wanted[row]: score for row, score in by_row.items()}

    def score_shares(self, query: Query, rows: npt.NDArray[np.int64]) -> FloatArray:
        """Return the keyword scores of turns by position, as shares of the best one's; shape (n,).

        Args:
            query: the question.
            rows: the positions, in order, of the turns that are searched and maybe others, which get 0.
        """
        with self.turns.lock:
            found, scores = self.turns.index.search(query.text, len(rows), self.turns.rows)
        shares = np.zeros(len(rows), dtype=np.float32)
        shares[np.searchsorted(rows, found)] = scores / max(float(scores.max(initial=0.0)), 1e-9)
        return shares


def list_sources(turns: SliceTurns, words: TurnsWithWords, anchor: int, config: RetrieverConfig) -> list[Source]:
    """Return the sources that phase 1 searches: by vectors, by words or by both, and the latest turns.

    Args:
        turns: what is searched.
        words: searches their words.
        anchor: the position of the anchor.
        config: names the sources.

    Raises:
        ConfigurationError: settings that name another keyword index, or that pack sentences.
    """
    if config.lexical not in (None, "bm25"):
        raise ConfigurationError(f"lexical must be 'bm25' or None in a conversation, got {config.lexical!r}")
    if config.packing != "passages":
        raise ConfigurationError(f"packing must be 'passages' in a conversation, got {config.packing!r}")
    near = NearestTurns(turns=turns)
    named: dict[str, list[Source]] = {"dense": [near], "lexical": [words], "hybrid": [near, words]}
    return [*named[config.sources], LatestTurns(turns=turns, anchor=anchor)]
