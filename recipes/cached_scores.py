"""Keeps a verifier's raw scores in a file, so that recipes that ask the same questions share them."""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from meve.ports import Calibration, Verifier
from meve.types import FloatArray

FILE = "scores.sqlite"
PROBE = ("Which weights are these?", "The text whose score tells models of the same name apart.")


class CachedVerifier:
    """A verifier whose raw scores are read from a file where it has them, and added to it otherwise."""

    def __init__(self, inner: Verifier, folder: Path) -> None:
        self._inner, self.name, self.calibration = inner, inner.name, inner.calibration
        self._model = f"{inner.name} {inner.raw_scores(PROBE[0], [PROBE[1]])[0]:.5f}"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / FILE
        with closing(self._open()) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, score REAL) WITHOUT ROWID")

    def raw_scores(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return the raw scores, shape (n,), in the order given."""
        keys = [hashlib.sha256("\0".join((self._model, query, text)).encode()).digest() for text in passages]
        with closing(self._open()) as database, database:
            found = [database.execute("SELECT score FROM scores WHERE key = ?", (key,)).fetchone() for key in keys]
            missing = [n for n, row in enumerate(found) if row is None]
            scores = np.array([0.0 if row is None else row[0] for row in found], dtype=np.float32)
            if missing:
                scores[missing] = self._inner.raw_scores(query, [passages[n] for n in missing])
                rows = [(keys[n], float(scores[n])) for n in missing]
                database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
        return scores

    def score(self, query: str, passages: Sequence[str]) -> FloatArray:
        """Return calibrated probabilities, shape (n,), in the order given."""
        return self.calibration.apply(self.raw_scores(query, passages))

    def with_calibration(self, calibration: Calibration) -> "CachedVerifier":
        """Return the same verifier and file with another calibration."""
        other = object.__new__(CachedVerifier)
        other.__dict__.update(self.__dict__, calibration=calibration)
        return other

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=60)
