"""A verifier that reads each pair once for all systems of a comparison, and charges each of them for it."""

import time
from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np

from meve.ports import Calibration, Verifier
from meve.types import FloatArray


class ReadOnce:
    """Around a verifier that reads texts. What it has read already it remembers, and says how long that had taken.

    Systems of a comparison mostly have the same passages read for a question. Reading them for each anew makes a run
    several times as long and tells nothing; but no system may seem quick since another was asked before. So a pair's
    time is kept with its score, and whoever asks for it again owes that time.
    """

    def __init__(self, inner: Verifier) -> None:
        self._inner = inner
        self._known: dict[tuple[str, str], tuple[float, float]] = {}
        self._owed = [0.0]

    @property
    def name(self) -> str:
        """The model's."""
        return self._inner.name

    @property
    def calibration(self) -> Calibration:
        """The model's."""
        return self._inner.calibration

    def owed(self) -> float:
        """The seconds that reading would have taken where it was spared, since this was last asked."""
        owed, self._owed[0] = self._owed[0], 0.0
        return owed

    def forget(self) -> None:
        """What was read so far is read again, and nobody owes anything."""
        self._known.clear()
        self._owed[0] = 0.0

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """The model's own scores, shape (n,), in the order given."""
        missing = list(dict.fromkeys(text for text in passages if (query, text) not in self._known))
        if missing:
            start = time.perf_counter()
            scores = self._inner.raw_scores(query, missing).tolist()
            each = (time.perf_counter() - start) / max(1, sum(len(query) + len(text) for text in missing))
            for text, score in zip(missing, scores, strict=True):
                self._known[query, text] = (score, each * (len(query) + len(text)))
        spared = set(passages) - set(missing)
        self._owed[0] += sum(self._known[query, text][1] for text in spared)
        return np.array([self._known[query, text][0] for text in passages], dtype=np.float32)

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Calibrated probabilities in [0, 1], shape (n,), in the order given."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> Self:
        """The same under another calibration; what was read is remembered by both."""
        other = copy(self)
        other._inner = self._inner.with_calibration(calibration)
        return other
