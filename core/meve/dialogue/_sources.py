"""A dialogue as a source of the five phases: turns around anchors, or all of them; and orders that need no vector."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve._formulas import unit
from meve.dialogue._hybrid_scorer import ASKED, EVIDENCE
from meve.dialogue._word_index import words_of
from meve.dialogue.dialogue import Read
from meve.dialogue.turns import Said
from meve.errors import ConfigurationError
from meve.types import Candidate, FloatArray, Passage, Query

FEW = 8
"""Of which share of a dialogue, one in so many, the vectors are compared by themselves."""
SPARE = 4
"""Of what is brought, one in so many places is left to turns that are brought for their words."""
ALIKE = 16
"""How many turns are brought for one word, the nearest to the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namesakes:
    """Turns that name what the question names, or what the turns nearest to it do, or hold other words of the question.

    In a long dialogue the nearest to a question of two steps are those that are worded like it, and the turn that only
    shares a name with the first step's is not among them.
    """

    read: Read
    wanted: AbstractSet[str]
    """The words of the question."""
    asked: AbstractSet[str]
    """The words of the names in the question."""
    said: AbstractSet[str]
    """Those of who talks, which are passed over."""
    threshold: float
    """The least cosine of a near turn whose names count."""

    def rows(
        self, query: FloatArray, near: Sequence[tuple[int, float]], inside: npt.NDArray[np.bool_], most: int
    ) -> list[tuple[int, float]]:
        """At most so many pieces with their cosines: for names of the question, of its evidence, for its other words.

        The rarest words come first, of each word the nearest pieces.

        Args:
            query: its vector, of length 1.
            near: the nearest pieces, each with its cosine.
            inside: of each piece, whether it may come.
            most: at most so many, and none of the nearest but the last so many.
        """
        there = {row for row, _ in near[: len(near) - most]}
        first = self._holding(self.asked - self.said, query, there, inside, most)
        known = dict([*near, *first])
        evidence = sorted(
            (row for row in known if known[row] >= self.threshold), key=lambda row: -self._score(row, known)
        )
        words = frozenset[str]().union(*map(self._words, evidence[:EVIDENCE]))
        found = first
        for more in (words - self.asked, self.wanted - self.asked - words):
            there.update(row for row, _ in found)
            found = found + self._holding(more - self.said, query, there, inside, most - len(found))
        return found

    def _holding(
        self,
        words: AbstractSet[str],
        query: FloatArray,
        there: AbstractSet[int],
        inside: npt.NDArray[np.bool_],
        most: int,
    ) -> list[tuple[int, float]]:
        """At most so many that are not there yet and hold one of the words."""
        held = [self.read.index.holding(word, len(self.read.pieces)) for word in sorted(words)]
        made: dict[int, float] = {}
        for rows in sorted(held, key=len):
            fresh = [row for row in rows if row not in there and row not in made and inside[row]]
            if len(made) < most and fresh:
                near = self.read.vectors[fresh] @ query
                made |= {fresh[n]: float(near[n]) for n in np.argsort(-near, kind="stable")[:ALIKE].tolist()}
        return list(made.items())[:most]

    def _score(self, row: int, near: Mapping[int, float]) -> float:
        return near[row] + ASKED * len(self._words(row) & self.asked) / max(1, len(self.asked))

    def _words(self, row: int) -> frozenset[str]:
        return words_of(self.read.index.names[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceWindow:
    """Phase 1 over a dialogue: what lies in some stretches of it, nearest to the question first."""

    read: Read
    inside: npt.NDArray[np.bool_]
    """Of each piece, whether it may come; shape (m,)."""
    latest: bool = False
    """Whether the latest come first, and not the nearest."""
    namesakes: Namesakes | None = None
    """What is brought for its words besides, however far it is from the question; None for nothing."""
    name: str = "importance"

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The places of the pieces that may come, in order."""
        return np.flatnonzero(self.inside)

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k turns, or pieces of long ones: the nearest, equal ones by their place, then namesakes; or the last.

        Raises:
            ConfigurationError: the query has no vector.
        """
        if query.vector is None:
            raise ConfigurationError("a search in a dialogue needs the query's vector: give the dialogue an embedder")
        rows = self.rows[-k:] if self.latest else self.rows
        if not rows.size:
            return []
        vector = unit(query.vector)
        best = self._nearest(vector, rows, k)
        if self.namesakes and len(best) < rows.size:
            others = self.namesakes.rows(vector, best, self.inside, k // SPARE)
            best = list((dict(best[: k - len(others)]) | dict(others)).items())
        return [
            Candidate(
                passage=self.read.pieces[row], origin=self.name, scores={self.name: near}, place=row,
                vector=self.read.vectors[row], tokens=self.read.tokens[row],
            )
            for row, near in best
        ]  # fmt: skip

    def _nearest(self, vector: FloatArray, rows: npt.NDArray[np.int64], k: int) -> list[tuple[int, float]]:
        vectors = self.read.vectors
        few = rows.size * FEW < len(vectors)  # to copy rows costs more than to multiply them
        near = vectors[rows] @ vector if few else (vectors @ vector)[rows]
        if self.latest:
            return list(zip(rows.tolist(), near.tolist(), strict=True))
        if k < near.size:  # all that tie with the last one stay till they are in order
            enough = np.flatnonzero(near >= np.partition(near, -k)[-k])
            rows, near = rows[enough], near[enough]
        best = np.argsort(-near, kind="stable")[:k]
        return list(zip(rows[best].tolist(), near[best].tolist(), strict=True))


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
