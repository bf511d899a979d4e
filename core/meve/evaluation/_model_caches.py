"""Caches around models: of passages' vectors and of scores, on disk, and of queries' vectors, in memory."""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from pathlib import Path
from typing import Self

import numpy as np

from meve.errors import EvaluationError, ModelError
from meve.ports import Calibration, Embedder, SentenceVerifier, Verifier
from meve.types import FloatArray, TextSpans

PROBE_TEXT = "Which weights are these?"
"""The text whose vector tells models of the same name but other weights apart."""
_PROBE_PASSAGE = "The text whose score tells models of the same name apart."
_BATCH = 256
"""Texts that are embedded between two commits: the most that an interruption loses."""


class WrappedEmbedder:
    """An embedder that passes a wrapped embedder's properties on."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.name, self.dimension, self.similarity = inner.name, inner.dimension, inner.similarity

    def embed_query(self, text: str) -> FloatArray:
        """Return the query's vector, shape (d,)."""
        return self._inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the passages' vectors, shape (n, d)."""
        return self._inner.embed_passages(texts)


class QueryCachingEmbedder(WrappedEmbedder):
    """An embedder that caches query vectors in memory until `clear` is called.

    A stock pipeline embeds the same query in several places. The cache makes the timing measure the pipeline, not how
    often its wrappers embed. A curve asks each question many times without timing it.
    """

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._vectors: dict[str, FloatArray] = {}

    def clear(self) -> None:
        """Forget all query vectors."""
        self._vectors = {}

    def embed_query(self, text: str) -> FloatArray:
        """Return the query's vector, shape (d,), from the cache if it is there."""
        if text not in self._vectors:
            self._vectors[text] = self._inner.embed_query(text)
        return self._vectors[text]


class DiskCachedEmbedder(WrappedEmbedder):
    """An embedder that caches passage vectors in a SQLite file; queries are embedded each time, so that they are timed.

    Evaluations can share the file, one at a time, and so can models: the key is the model's name with the text.
    """

    def __init__(self, inner: Embedder, file: Path) -> None:
        super().__init__(inner)
        self._file = file
        with self._transaction() as database:
            database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            database.execute("CREATE TABLE IF NOT EXISTS models (name TEXT PRIMARY KEY, probe TEXT)")
            probe = json.dumps([round(value, 3) for value in inner.embed_query(PROBE_TEXT)[:8].tolist()])
            database.execute("INSERT OR IGNORE INTO models VALUES (?, ?)", (inner.name, probe))
            stored = database.execute("SELECT probe FROM models WHERE name = ?", (inner.name,)).fetchone()[0]
        if stored != probe:
            raise EvaluationError(
                f"{file} holds vectors of other weights under the name {inner.name!r}: choose another --cache"
            )

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the passages' vectors, shape (n, d), from the file where it has them.

        Raises:
            EvaluationError: the file can't be read or written.
            ModelError: the embedder failed.
        """
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        keys = [self._key(text) for text in texts]
        missing: list[int] = []
        with self._transaction() as database:
            for n, key in enumerate(keys):
                row = database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is None or len(row[0]) != 4 * self.dimension:
                    missing.append(n)
                else:
                    vectors[n] = np.frombuffer(row[0], dtype=np.float32)
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors[batch] = self._inner.embed_passages([texts[n] for n in batch])
            with self._transaction() as database:
                rows = [(keys[n], vectors[n].tobytes()) for n in batch]
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return vectors

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._inner.name}\0{text}".encode("utf-8", "surrogatepass")).digest()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=60)) as database, database:
                yield database
        except sqlite3.OperationalError as cause:
            raise EvaluationError(f"can't use {self._file} for embeddings: {cause}; choose another --cache") from cause
        except sqlite3.DatabaseError as cause:
            raise EvaluationError(f"{self._file} is no file of embeddings: {cause}; choose another --cache") from cause
        except OSError as cause:
            raise EvaluationError(f"can't use {self._file} for embeddings: {cause.strerror}") from cause


class SharedVerifier:
    """A cache around a verifier that keeps, for each pair, its score and the time that scoring took.

    Systems of a comparison mostly verify the same passages. Scoring them again for each system would multiply the run
    time. A cached score must not make a later system look faster, so `take_spared_seconds` reports the time saved.
    """

    def __init__(self, inner: Verifier) -> None:
        self._inner, self.name, self.calibration = inner, inner.name, inner.calibration
        self._scores: dict[tuple[str, str], tuple[float, float]] = {}
        self._sentences: dict[tuple[str, str, TextSpans], FloatArray] = {}
        self._spared_seconds = [0.0]

    def take_spared_seconds(self) -> float:
        """Return the seconds that cached scores have saved since the last call."""
        seconds, self._spared_seconds[0] = self._spared_seconds[0], 0.0
        return seconds

    def clear(self) -> None:
        """Forget all scores and saved seconds."""
        self._scores.clear()
        self._sentences.clear()
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

    @property
    def scores_sentences(self) -> bool:
        """Whether the verifier can rate the sentences of a passage that it has scored, without reading it again."""
        return isinstance(self._inner, SentenceVerifier) and self._inner.scores_sentences

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[FloatArray]:
        """Return for each passage the verifier's own probabilities of its sentences.

        Raises:
            ModelError: the verifier can't score sentences.
        """
        if not isinstance(self._inner, SentenceVerifier):
            raise ModelError(f"{self.name} can't score sentences: check `scores_sentences` first")
        keys = [(query, text, tuple(spans)) for text, spans in zip(passages, sentences, strict=True)]
        missing = [n for n, key in enumerate(keys) if key not in self._sentences]
        if missing:
            scored = self._inner.score_sentences(query, [passages[n] for n in missing], [sentences[n] for n in missing])
            self._sentences.update((keys[n], scores) for n, scores in zip(missing, scored, strict=True))
        return [self._sentences[key] for key in keys]

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the verifier under another calibration; both share the cached scores."""
        other = copy(self)
        other._inner, other.calibration = self._inner.with_calibration(calibration), calibration
        return other


class DiskCachedVerifier:
    """A verifier that keeps raw scores in a SQLite file, and scores no sentences.

    Evaluations and recipes that ask the same questions can share the file. The key is the model's name and the score of
    a probe, with question and text.
    """

    def __init__(self, inner: Verifier, file: Path) -> None:
        self._inner, self.name, self.calibration = inner, inner.name, inner.calibration
        self._model = f"{inner.name} {inner.raw_scores(PROBE_TEXT, [_PROBE_PASSAGE])[0]:.5f}"
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
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

    def with_calibration(self, calibration: Calibration) -> Self:
        """Return the same verifier and file with another calibration."""
        other = copy(self)
        other._inner, other.calibration = self._inner.with_calibration(calibration), calibration
        return other

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=60)


class DiskCachedSentenceVerifier(DiskCachedVerifier):
    """The same, but it scores sentences, each time anew, if the wrapped verifier does."""

    @property
    def scores_sentences(self) -> bool:
        """Whether the verifier can rate sentences."""
        return isinstance(self._inner, SentenceVerifier) and self._inner.scores_sentences

    def score_sentences(self, query: str, passages: Sequence[str], sentences: Sequence[TextSpans]) -> list[FloatArray]:
        """Return for each passage the verifier's own probabilities of its sentences.

        Raises:
            ModelError: the verifier can't score sentences.
        """
        if not isinstance(self._inner, SentenceVerifier):
            raise ModelError(f"{self.name} can't score sentences: check `scores_sentences` first")
        return self._inner.score_sentences(query, passages, sentences)
