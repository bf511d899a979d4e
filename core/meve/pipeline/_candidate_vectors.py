"""Embed queries and candidates that come without a vector."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meve._vectors import validate_vectors
from meve.errors import ConfigurationError, ModelError, wrap_errors
from meve.ports import Embedder, Source
from meve.types import Candidate, FloatArray, Query


def with_query_vector(query: Query, embedder: Embedder | None) -> Query:
    """Return the query with its embedding; unchanged without an embedder.

    Raises:
        ModelError: the embedder failed.
        VectorError: the embedder didn't return one finite vector of its dimension.
    """
    if embedder is None:
        return query
    with wrap_errors(ModelError, f"embedding the query with {embedder.name!r}"):
        vector = embedder.embed_query(query.text)
    return replace(query, vector=validate_vectors(vector, (embedder.dimension,), f"embedder {embedder.name!r}"))


def with_vectors(candidates: Sequence[Candidate], embedder: Embedder | None) -> Sequence[Candidate]:
    """Embed the candidates that come without a vector, in one batch.

    Raises:
        ConfigurationError: there are such candidates, but no embedder.
        ModelError: the embedder failed.
    """
    bare = [c for c in candidates if c.vector is None]
    if not bare:
        return candidates
    if embedder is None:
        raise ConfigurationError(
            f"{len(bare)} candidates of source {bare[0].origin!r} have no vector: give the pipeline an embedder"
        )
    with wrap_errors(ModelError, f"embedding {len(bare)} passages with {embedder.name!r}"):
        embedded = embedder.embed_passages([c.passage.content for c in bare])
    vectors = dict(zip((c.id for c in bare), embedded, strict=True))
    return [c if c.vector is not None else replace(c, vector=vectors[c.id]) for c in candidates]


def stack_vectors(candidates: Sequence[Candidate]) -> FloatArray:
    """Return the candidates' vectors, shape (n, d); (0, 1) if there are none."""
    vectors = [c.vector for c in candidates if c.vector is not None]
    return np.array(vectors) if vectors else np.zeros((0, 1), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class SourceWithVectors:
    """A source whose candidates all have vectors, stored or embedded here."""

    inner: Source
    embedder: Embedder | None

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, query: Query, k: int) -> Sequence[Candidate]:
        return with_vectors(self.inner.search(query, k), self.embedder)

    @property
    def score_ids(self) -> Callable[[Query, Sequence[str]], Mapping[str, float]] | None:
        return getattr(self.inner, "score_ids", None)
