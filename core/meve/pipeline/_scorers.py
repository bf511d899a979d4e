"""Who gives candidates their score: a verifier, or plain similarity where nothing is verified."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import cosines
from meve.errors import ModelError, wrap_errors
from meve.ports import Embedder, VectorVerifier, Verifier
from meve.types import Candidate, FloatArray, Query


class VerifierScorer:
    """A verifier's probabilities. One that judges by embeddings is given the stored ones; none is made twice."""

    name = "verifier"

    def __init__(self, verifier: Verifier, embedder: Embedder | None = None) -> None:
        self.verifier = verifier
        self._vectors = (
            verifier
            if embedder is not None and isinstance(verifier, VectorVerifier) and _same(verifier.embedder, embedder)
            else None
        )

    @property
    def reads_vectors(self) -> bool:
        """Whether it judges by vectors, where candidates have them."""
        return self._vectors is not None

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Probabilities in [0, 1], shape (n,).

        Raises:
            ModelError: the verifier failed, or returned something outside [0, 1].
        """
        with wrap_errors(ModelError, f"verifying with {self.verifier.name!r}"):
            scores = np.asarray(self._scores(query, candidates), dtype=np.float32)
        if scores.size and (scores.min() < 0 or scores.max() > 1):
            raise ModelError(
                f"verifier {self.verifier.name!r} returned scores from {scores.min():.3g} to {scores.max():.3g}: "
                "a threshold needs probabilities in [0, 1]; give it a calibration"
            )
        return scores

    def _scores(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        stored = [c.vector for c in candidates if c.vector is not None]
        if self._vectors is not None and query.vector is not None and len(stored) == len(candidates):
            return self._vectors.score_vectors(query.vector, np.array(stored))
        return self.verifier.score(query.text, [c.passage.content for c in candidates])


class SimilarityScorer:
    """The cosine of query and passage: orders the modes that verify nothing."""

    name = "similarity"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Cosines in [-1, 1], shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if query.vector is None or len(vectors) != len(candidates):
            raise ModelError("similarity needs a vector of the query and each candidate: give the pipeline an embedder")
        return cosines(query.vector, np.array(vectors)) if vectors else np.zeros(0, dtype=np.float32)


def _same(one: Embedder, other: Embedder) -> bool:
    return one is other or (one.name == other.name and one.dimension == other.dimension)
