"""Embedders with a cache: passages on disk across evaluations, queries in memory."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from meve.errors import EvaluationError
from meve.ports import Embedder
from meve.types import FloatArray, Similarity

PROBE_TEXT = "Which weights are these?"
"""The text whose vector tells models of the same name but other weights apart."""
_BATCH = 256
"""Texts that are embedded between two commits: the most that an interruption loses."""


class WrappedEmbedder:
    """An embedder that passes a wrapped embedder's properties on."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        return self._inner.dimension

    @property
    def similarity(self) -> Similarity:
        """The wrapped model's similarity."""
        return self._inner.similarity


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

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the passages' vectors, shape (n, d)."""
        return self._inner.embed_passages(texts)


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

    def embed_query(self, text: str) -> FloatArray:
        """Return the query's vector, shape (d,), without the cache."""
        return self._inner.embed_query(text)

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
