"""Sources of turns for the retrieval phase: the nearest or latest ones in windows, and matches of names and words."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meve._formulas import normalize
from meve.dialogue._name_index import join_names
from meve.dialogue._turn_scorers import EVIDENCE_TURNS, NAME_WEIGHT
from meve.dialogue.dialogue import DialogueSnapshot
from meve.errors import ConfigurationError
from meve.types import Candidate, FloatArray, Query

_SPARSE = 8
"""Rows are copied before they are compared if they are fewer than 1 in 8 of the dialogue."""
_MATCH_SHARE = 4
"""One candidate in 4 may be a match of names or words."""
_MATCHES_PER_WORD = 16

_Row = tuple[int, float]
"""Position of a passage and its cosine with the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatches:
    """Finds turns by names in the question, then by names in the evidence, then by other words of the question.

    In a long dialogue the turns nearest to a question of two steps are worded like the question. The turn of the second
    step is not among them: it only shares a name with the first step's turn.
    """

    snapshot: DialogueSnapshot
    query_words: AbstractSet[str]
    query_names: AbstractSet[str]
    """The words of all names in the question."""
    speaker_words: AbstractSet[str]
    """Words of the speakers' names, which are ignored."""
    threshold: float
    """Minimum cosine of a turn that counts as evidence."""

    def find_rows(
        self, query: FloatArray, near: Sequence[_Row], inside: npt.NDArray[np.bool_], limit: int
    ) -> list[_Row]:
        """Return at most `limit` passages; rarest words first, and of each word the nearest passages.

        Args:
            query: the question's vector, of length 1.
            near: the nearest passages; only the last `limit` of them may be returned again.
            inside: for each passage, whether it may be returned; shape (m,).
            limit: maximum number of passages.
        """
        known = {row for row, _ in near[: len(near) - limit]}
        matches = self._find_words(self.query_names - self.speaker_words, query, known, inside, limit)
        cosines = dict([*near, *matches])
        evidence = sorted(
            (row for row in cosines if cosines[row] >= self.threshold), key=lambda row: -self._score(row, cosines)
        )
        names = frozenset[str]().union(*map(self._names, evidence[:EVIDENCE_TURNS]))
        for words in (names - self.query_names, self.query_words - self.query_names - names):
            known.update(row for row, _ in matches)
            rest = limit - len(matches)
            matches = matches + self._find_words(words - self.speaker_words, query, known, inside, rest)
        return matches

    def _find_words(
        self,
        words: AbstractSet[str],
        query: FloatArray,
        known: AbstractSet[int],
        inside: npt.NDArray[np.bool_],
        limit: int,
    ) -> list[_Row]:
        """Return at most `limit` passages that contain one of the words and aren't known."""
        postings = [self.snapshot.index.find_rows(word, len(self.snapshot.passages)) for word in sorted(words)]
        matches: dict[int, float] = {}
        for rows in sorted(postings, key=len):
            new = [row for row in rows if row not in known and row not in matches and inside[row]]
            if len(matches) < limit and new:
                near = self.snapshot.vectors[new] @ query
                best = np.argsort(-near, kind="stable")[:_MATCHES_PER_WORD].tolist()
                matches |= {new[n]: float(near[n]) for n in best}
        return list(matches.items())[:limit]

    def _score(self, row: int, cosines: Mapping[int, float]) -> float:
        shared = len(self._names(row) & self.query_names)
        return cosines[row] + NAME_WEIGHT * shared / max(1, len(self.query_names))

    def _names(self, row: int) -> frozenset[str]:
        return join_names(self.snapshot.index.names[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueSource:
    """Retrieves turns of a dialogue that lie in certain windows, the nearest to the question first."""

    snapshot: DialogueSnapshot
    inside: npt.NDArray[np.bool_]
    """For each passage, whether it may be returned; shape (m,)."""
    latest: bool = False
    """Whether to return the latest turns instead of the nearest."""
    matches: EntityMatches | None = None
    """Adds turns by names and words, however far they are from the question."""
    name: str = "importance"

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Positions of the passages that may be returned, in order."""
        return np.flatnonzero(self.inside)

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k turns, or parts of long ones: the nearest, then matches by name; or the latest in order.

        Raises:
            ConfigurationError: the query has no vector.
        """
        if query.vector is None:
            raise ConfigurationError("the query has no vector, and a dialogue is searched by vector: set embedder")
        rows = self.rows[-k:] if self.latest else self.rows
        if not rows.size:
            return []
        vector = normalize(query.vector)
        best = self._find_nearest(vector, rows, k)
        if self.matches and len(best) < rows.size:
            matches = self.matches.find_rows(vector, best, self.inside, k // _MATCH_SHARE)
            best = list((dict(best[: k - len(matches)]) | dict(matches)).items())
        return [
            Candidate(
                passage=self.snapshot.passages[row], origin=self.name, scores={self.name: cosine}, place=row,
                vector=self.snapshot.vectors[row], tokens=self.snapshot.tokens[row],
            )
            for row, cosine in best
        ]  # fmt: skip

    def _find_nearest(self, vector: FloatArray, rows: npt.NDArray[np.int64], k: int) -> list[_Row]:
        vectors = self.snapshot.vectors
        sparse = rows.size * _SPARSE < len(vectors)  # to copy rows costs more than to multiply them
        cosines = vectors[rows] @ vector if sparse else (vectors @ vector)[rows]
        if self.latest:
            return list(zip(rows.tolist(), cosines.tolist(), strict=True))
        if k < cosines.size:  # all that tie with the last one stay until they are sorted
            enough = np.flatnonzero(cosines >= np.partition(cosines, -k)[-k])
            rows, cosines = rows[enough], cosines[enough]
        best = np.argsort(-cosines, kind="stable")[:k]
        return list(zip(rows[best].tolist(), cosines[best].tolist(), strict=True))
