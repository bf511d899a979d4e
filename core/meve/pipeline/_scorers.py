"""Score candidates by a verifier, or by cosine similarity in modes that verify nothing."""

from collections.abc import Sequence

import numpy as np

from meve._formulas import cosines
from meve.errors import ModelError, wrap_errors
from meve.ports import Embedder, VectorVerifier, Verifier
from meve.types import Candidate, FloatArray, Query


class VerifierScorer:
    """The probabilities of a verifier, from stored vectors where the verifier judges by embeddings."""

    name = "verifier"

    def __init__(self, verifier: Verifier, embedder: Embedder | None = None) -> None:
        self.verifier = verifier
        self._vectors = (
            verifier
            if embedder is not None and isinstance(verifier, VectorVerifier) and _is_same(verifier.embedder, embedder)
            else None
        )

    @property
    def reads_vectors(self) -> bool:
        """Whether scores are computed from the candidates' vectors."""
        return self._vectors is not None

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return probabilities in [0, 1], shape (n,).

        Raises:
            ModelError: the verifier failed, or returned a score outside [0, 1].
        """
        with wrap_errors(ModelError, f"verifying with {self.verifier.name!r}"):
            scores = np.asarray(self._scores(query, candidates), dtype=np.float32)
        if scores.size and (scores.min() < 0 or scores.max() > 1):
            raise ModelError(
                f"scores of verifier {self.verifier.name!r} must be between 0 and 1, got {scores.min():.3g} to "
                f"{scores.max():.3g}: give the verifier a calibration"
            )
        return scores

    def _scores(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        stored = [c.vector for c in candidates if c.vector is not None]
        if self._vectors is not None and query.vector is not None and len(stored) == len(candidates):
            return self._vectors.score_vectors(query.vector, np.array(stored))
        return self.verifier.score(query.text, [c.passage.content for c in candidates])


class SimilarityScorer:
    """The cosine of query and passage, for modes that verify nothing."""

    name = "similarity"

    def score(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return cosines in [-1, 1], shape (n,).

        Raises:
            ModelError: the query or a candidate has no vector.
        """
        vectors = [c.vector for c in candidates if c.vector is not None]
        if query.vector is None or len(vectors) != len(candidates):
            raise ModelError("similarity needs vectors of query and candidates: give the pipeline an embedder")
        return cosines(query.vector, np.array(vectors)) if vectors else np.zeros(0, dtype=np.float32)


def _is_same(one: Embedder, other: Embedder) -> bool:
    return one is other or (one.name == other.name and one.dimension == other.dimension)
