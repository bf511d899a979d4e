"""Deterministic fakes whose results can be computed in one's head, for your tests.

>>> WordEmbedder().embed_query("cat dog")[[2, 3]].astype(float).round(2).tolist()
[0.71, 0.71]
>>> OverlapVerifier().score("blue sky", ["the sky", "grass"]).tolist()
[0.5, 0.0]
>>> WordCounter().count("one two three")
3
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

import numpy as np

from meve._formulas import normalize
from meve.calibration.probability_maps import IsotonicCalibration
from meve.ports import Calibration, Embedder, TokenCounter
from meve.types import FloatArray, Similarity

IDENTITY = IsotonicCalibration(raw=(0.0, 1.0), probability=(0.0, 1.0))
"""The calibration for raw scores that are probabilities already."""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class WordEmbedder:
    """Counts words by their first letter: axis 0 for a, … 25 for z, 26 for the rest; scaled to length 1."""

    name = "words-by-initial"
    dimension = 27
    similarity: Similarity = "cosine"

    def embed_query(self, text: str) -> FloatArray:
        """Return a vector of shape (27,)."""
        vector: FloatArray = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of shape (n, 27)."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for i, text in enumerate(texts):
            for word in _words(text):
                axis = ord(word[0]) - ord("a")
                vectors[i, axis if 0 <= axis < 26 else 26] += 1
        return normalize(vectors)


class OverlapVerifier:
    """Scores a passage by the share of the query's distinct words that it contains."""

    name = "word-overlap"

    def __init__(self, calibration: Calibration = IDENTITY) -> None:
        self.calibration = calibration

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return shares in [0, 1], shape (n,)."""
        query_words = set(_words(query))
        return np.array(
            [len(query_words & set(_words(p))) / max(len(query_words), 1) for p in passages], dtype=np.float32
        )

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated shares in [0, 1], shape (n,)."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return a verifier with another calibration."""
        return type(self)(calibration)


class WordCounter:
    """Counts the words between white space, each as one token."""

    name = "words"

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text."""
        return [self.count(text) for text in texts]


class FakeClock:
    """A clock that moves by `step` seconds when read, and by `advance`."""

    def __init__(self, start: datetime | None = None, step: float = 0.001) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed = 0.0
        self._step = step

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return self._now

    def elapsed(self) -> float:
        """Return elapsed seconds, `step` more at each call."""
        self._elapsed += self._step
        return self._elapsed

    def advance(self, by: timedelta) -> None:
        """Move the clock forward."""
        self._now += by
        self._elapsed += by.total_seconds()


@dataclass
class Calls:
    """The recorded calls of a counting component, in order."""

    queries: list[str] = field(default_factory=list)
    passages: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


class CountingEmbedder:
    """Wraps an embedder and records its calls."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.name, self.dimension, self.similarity = inner.name, inner.dimension, inner.similarity
        self.calls = Calls()

    def embed_query(self, text: str) -> FloatArray:
        """Record and embed the query."""
        with self.calls.lock:
            self.calls.queries.append(text)
        return self._inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Record and embed the passages."""
        with self.calls.lock:
            self.calls.passages.extend(texts)
        return self._inner.embed_passages(texts)


class CountingTokens:
    """Wraps a token counter and records its calls."""

    def __init__(self, inner: TokenCounter) -> None:
        self._inner = inner
        self.name = inner.name
        self.calls = Calls()

    def count(self, text: str) -> int:
        """Record and count the text."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Record and count the texts."""
        with self.calls.lock:
            self.calls.passages.extend(texts)
        return self._inner.count_many(texts)
