"""Search a corpus for candidates, by vectors or by keywords."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meve.errors import ConfigurationError
from meve.pipeline.config import Sources
from meve.ports import LexicalIndex, Source
from meve.types import Candidate, Query, RowArray

if TYPE_CHECKING:
    from meve.retrieval._corpus import Corpus


def choose_sources(dense: Source, lexical: Source, sources: Sources) -> list[Source]:
    """Return the sources that a setting names, the most trusted first."""
    named: dict[Sources, list[Source]] = {"dense": [dense], "lexical": [lexical], "hybrid": [dense, lexical]}
    return named[sources]


@dataclass(frozen=True, slots=True)
class DenseSource:
    """A source of the candidates with the nearest vectors."""

    corpus: "Corpus"
    counted: bool = True
    """Whether the stored token counts are those of the tokenizer in use."""
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates with their stored vectors and token counts, best first, ties by id.

        Raises:
            ConfigurationError: the query has no vector.
        """
        vector = query.vector
        if vector is None:
            raise ConfigurationError("a dense search needs the vector of the query: give the pipeline an embedder")
        allowed = self.corpus.filter_rows(query.where)
        hits = self.corpus.top_rows(lambda limit: self.corpus.dense.search(vector, limit, allowed), k)
        return make_candidates(self.corpus, hits, name=self.name, counted=self.counted)


@dataclass(frozen=True, slots=True)
class LexicalSource:
    """A source of the candidates that share words with the query."""

    corpus: "Corpus"
    index: LexicalIndex
    counted: bool = True
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """Return at most k candidates that share a word with the query, best first, ties by id."""
        allowed = self.corpus.filter_rows(query.where)
        hits = self.corpus.top_rows(lambda limit: self.index.search(query.text, limit, allowed), k)
        return make_candidates(self.corpus, hits, name=self.name, counted=self.counted)

    def word_counter(self, query: Query) -> Callable[[str], int] | None:
        """Return a function that tells in how many passages that the query's filter admits a word stands, or None."""
        make: Callable[..., Callable[[str], int] | None] | None = getattr(self.index, "word_counter", None)
        return make and make(lambda: self.corpus.filter_rows(query.where))

    def score_ids(self, query: Query, ids: Sequence[str]) -> dict[str, float]:
        """Return the keyword scores of known passages by id, 0 for those that share no word with the query."""
        return score_rows(self.index, query.text, {self.corpus.rows[i]: i for i in ids if i in self.corpus.rows})


def score_rows(index: LexicalIndex, text: str, rows: Mapping[int, str]) -> dict[str, float]:
    """Return the keyword scores of rows by their ids, 0 for those that share no word with the text."""
    found, scores = index.search(text, len(rows), to_row_array(sorted(rows)))
    by_row = dict.fromkeys(rows, 0.0) | dict(zip(found.tolist(), scores.tolist(), strict=True))
    return {rows[row]: score for row, score in by_row.items()}


def make_candidates(
    corpus: "Corpus", hits: Sequence[tuple[int, float]], *, name: str, counted: bool
) -> list[Candidate]:
    """Return candidates for rows and scores, with their stored vectors."""
    if not hits:
        return []
    rows = [row for row, _ in hits]
    stored = zip(hits, map(corpus.entries.__getitem__, rows), corpus.dense.vectors(to_row_array(rows)), strict=True)
    return [
        Candidate(
            passage=entry.passage,
            origin=name,
            scores={name: score},
            vector=vector,
            tokens=entry.tokens if counted else None,
        )
        for (_, score), entry, vector in stored
    ]


def to_row_array(rows: Sequence[int]) -> RowArray:
    """Return row keys as an array, shape (n,)."""
    return np.asarray(rows, dtype=np.int64)
