"""A corpus as something that candidates come from: by vectors, and by words."""

from collections.abc import Sequence
from dataclasses import dataclass

from meve.errors import ConfigurationError
from meve.ports import LexicalIndex
from meve.retrieval._corpus import Corpus, as_row_array
from meve.types import Candidate, Query


@dataclass(frozen=True, slots=True)
class DenseSource:
    """Phase 1 over a corpus: nearest vectors."""

    corpus: Corpus
    counted: bool = True
    """Whether the corpus's token counts are those of the tokenizer in use."""
    name: str = "dense"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k candidates with their stored vectors and token counts, best first, equal ones by id.

        Raises:
            ConfigurationError: the query has no vector.
        """
        vector = query.vector
        if vector is None:
            raise ConfigurationError("a dense search needs the query's vector: give the pipeline an embedder")
        allowed = self.corpus.allowed(query.where)
        hits = self.corpus.top(lambda reach: self.corpus.dense.search(vector, reach, allowed), k)
        return make_candidates(self.corpus, hits, name=self.name, counted=self.counted)


@dataclass(frozen=True, slots=True)
class LexicalSource:
    """Words over a corpus: BM25."""

    corpus: Corpus
    index: LexicalIndex
    counted: bool = True
    name: str = "lexical"

    def search(self, query: Query, k: int) -> list[Candidate]:
        """At most k candidates that share a word with the query, best first, equal ones by id."""
        allowed = self.corpus.allowed(query.where)
        hits = self.corpus.top(lambda reach: self.index.search(query.text, reach, allowed), k)
        return make_candidates(self.corpus, hits, name=self.name, counted=self.counted)


def make_candidates(corpus: Corpus, hits: Sequence[tuple[int, float]], *, name: str, counted: bool) -> list[Candidate]:
    """Rows and scores as candidates with what is stored of them."""
    if not hits:
        return []
    rows = [row for row, _ in hits]
    found = zip(hits, map(corpus.entries.__getitem__, rows), corpus.dense.vectors(as_row_array(rows)), strict=True)
    return [
        Candidate(
            passage=entry.passage,
            origin=name,
            scores={name: score},
            vector=vector,
            tokens=entry.tokens if counted else None,
        )
        for (_, score), entry, vector in found
    ]
