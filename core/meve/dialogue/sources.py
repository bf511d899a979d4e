"""A dialogue as a source of the five phases: turns around anchors, or all of them; and orders that need no vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve.dialogue.dialogue import Read
from meve.dialogue.turns import Said
from meve.errors import ConfigurationError
from meve.formulas import unit
from meve.types import Candidate, FloatArray, Passage, Query

FEW = 8
"""Of which share of a dialogue, one in so many, the vectors are compared by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceWindow:
    """Phase 1 over a dialogue: what lies in some stretches of it, nearest to the question first."""

    read: Read
    inside: npt.NDArray[np.bool_]
    """Of each piece, whether it may come; shape (m,)."""
    latest: bool = False
    """Whether the latest come first, and not the nearest."""
    name: str = "importance"

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The places of the pieces that may come, in order."""
        return np.flatnonzero(self.inside)

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k turns, or pieces of long ones, nearest first, equal ones by their place; or the latest first.

        Raises:
            ConfigurationError: the query has no vector.
        """
        if query.vector is None:
            raise ConfigurationError("a search in a dialogue needs the query's vector: give the dialogue an embedder")
        rows = self.rows[-k:] if self.latest else self.rows
        if not rows.size:
            return []
        vector, vectors = unit(query.vector), self.read.vectors
        few = rows.size * FEW < len(vectors)  # to copy rows costs more than to multiply them
        near = vectors[rows] @ vector if few else (vectors @ vector)[rows]
        if k < near.size:  # all that tie with the last one stay till they are in order
            enough = np.flatnonzero(near >= np.partition(near, -k)[-k])
            rows, near = rows[enough], near[enough]
        best = np.arange(rows.size)[::-1] if self.latest else np.argsort(-near, kind="stable")[:k]
        return [
            Candidate(
                passage=self.read.pieces[row], origin=self.name, scores={self.name: float(near[n])},
                vector=self.read.vectors[row], tokens=self.read.tokens[row], place=row,
            )
            for n, row in zip(best.tolist(), rows[best].tolist(), strict=True)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """Orders turns by their place, the latest first; for where no similarity is looked at."""

    count: int
    """How many turns there are."""
    name: str = "latest"
    reads_vectors: bool = False

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:  # noqa: ARG002
        """From 0 for the first turn up to 1, shape (n,)."""
        places = [turn_of(candidate.passage) for candidate in candidates]
        return np.asarray([place / max(1, self.count) for place in places], dtype=np.float32)


def turn_of(passage: Passage) -> int:
    """The place of the turn that a passage is, or is a piece of.

    Raises:
        ConfigurationError: it is no turn of a dialogue.
    """
    if not isinstance(passage, Said):
        raise ConfigurationError(f"passage {passage.id!r} is no turn of a dialogue")
    return passage.turn
