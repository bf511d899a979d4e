"""A verifier that scores each pair once for all systems of a comparison, and charges its time to each of them."""

import time
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from meve.ports import Calibration, Verifier
from meve.types import FloatArray


class SharedVerifier:
    """A cache around a verifier that keeps, for each pair, its score and the time that scoring took.

    Systems of a comparison mostly verify the same passages. Scoring them again for each system would multiply the run
    time. A cached score must not make a later system look faster, so `take_spared_seconds` reports the time saved.
    """

    def __init__(self, inner: Verifier) -> None:
        self._inner = inner
        self._scores: dict[tuple[str, str], tuple[float, float]] = {}
        self._spared_seconds = [0.0]

    @property
    def name(self) -> str:
        """The wrapped verifier's name."""
        return self._inner.name

    @property
    def calibration(self) -> Calibration:
        """The wrapped verifier's calibration."""
        return self._inner.calibration

    def take_spared_seconds(self) -> float:
        """Return the seconds that cached scores have saved since the last call."""
        seconds, self._spared_seconds[0] = self._spared_seconds[0], 0.0
        return seconds

    def clear(self) -> None:
        """Forget all scores and saved seconds."""
        self._scores.clear()
        self._spared_seconds[0] = 0.0

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the verifier's own scores, shape (n,), in the order given."""
        missing = list(dict.fromkeys(text for text in passages if (query, text) not in self._scores))
        if missing:
            start = time.perf_counter()
            scores = self._inner.raw_scores(query, missing).tolist()
            per_character = (time.perf_counter() - start) / max(1, sum(len(query) + len(text) for text in missing))
            for text, score in zip(missing, scores, strict=True):
                self._scores[query, text] = (score, per_character * (len(query) + len(text)))
        cached = set(passages) - set(missing)
        self._spared_seconds[0] += sum(self._scores[query, text][1] for text in cached)
        return np.array([self._scores[query, text][0] for text in passages], dtype=np.float32)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities in [0, 1], shape (n,), in the order given."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the verifier under another calibration; both share the cached scores."""
        other = copy(self)
        other._inner = self._inner.with_calibration(calibration)
        return other
