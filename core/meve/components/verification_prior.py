"""A fitted prior: estimates before verification which candidates have no chance of being verified."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meve._formulas import cosines, sigmoid
from meve.components.lexical.analyzers import content_words
from meve.components.logistic import LogisticEstimate
from meve.types import Candidate, FloatArray, Query

FEATURES = ("cosine", "nearest", "lexical", "coverage")


def extract_candidate_features(query: Query, candidates: Sequence[Candidate]) -> FloatArray:
    """Return the features of the prior, shape (n, 4): `cosine` in [-1, 1], the others in [0, 1].

    `cosine`: of query and passage. `nearest`: the cosine divided by the highest among the candidates. `lexical`: the
    candidate's keyword share, 0 if it is unknown. `coverage`: the share of the query's content words that the passage
    contains.
    """
    near = np.zeros(len(candidates), dtype=np.float32)
    vectors = [c.vector for c in candidates if c.vector is not None]
    if query.vector is not None and vectors and len(vectors) == len(candidates):
        near = cosines(query.vector, np.array(vectors))
    words = np.array([c.keyword_share or 0.0 for c in candidates], dtype=np.float32)
    wanted = set(content_words(query.text))
    there = [len(wanted & set(content_words(c.passage.content))) for c in candidates]
    covered = np.array(there, dtype=np.float32) / max(len(wanted), 1)
    features = np.stack([near, _share(near), words, covered], axis=1)
    return np.asarray(features, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPrior(LogisticEstimate):
    """A logistic prior, valid only for the embedder and the verifier it was fitted with."""

    kind = "prior"
    features = FEATURES
    limit = "least"

    embedder: str
    least: float
    """The probability in [0, 1] below which a candidate need not be scored."""
    lost: float = 0.0
    """The share of verifiable candidates that lay below `least`, on questions held out of the fit."""
    saved: float = 0.0
    """The share of all candidates that lay below `least`."""

    def chances(self, query: Query, candidates: Sequence[Candidate]) -> FloatArray:
        """Return the probability that each candidate would be verified, shape (n,), in the order given.

        It is 1 for candidates without a keyword share, and for all if one of them or the query has no vector.
        """
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        weights = np.array([self.weights[name] for name in FEATURES])
        estimated = sigmoid(extract_candidate_features(query, candidates) @ weights + self.intercept)
        has_vectors = query.vector is not None and all(c.vector is not None for c in candidates)
        known = [has_vectors and c.keyword_share is not None for c in candidates]
        return np.asarray(np.where(known, estimated, 1.0), dtype=np.float32)


def _share(values: FloatArray) -> FloatArray:
    top = float(values.max(initial=0.0))
    return np.asarray(values / top if top > 0 else np.zeros_like(values), dtype=np.float32)
