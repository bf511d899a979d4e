"""Embeddings kept on disk, so that no evaluation embeds a passage that an earlier one has embedded."""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from meve.errors import EvaluationError
from meve.ports import Embedder
from meve.types import FloatArray, Similarity

_BATCH = 256
"""Texts that are embedded between two commits: what an interruption costs at most."""


class CachedEmbedder:
    """An embedder whose passage vectors are kept in a file; queries are embedded each time, so that they can be timed.

    The file may be shared by evaluations, one at a time, and by models: it knows texts by model name and SHA-256.
    """

    def __init__(self, inner: Embedder, file: Path) -> None:
        self._inner = inner
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def name(self) -> str:
        """The model's."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """The length d of a vector."""
        return self._inner.dimension

    @property
    def similarity(self) -> Similarity:
        """The model's."""
        return self._inner.similarity

    def embed_query(self, text: str) -> FloatArray:
        """Shape (d,); not from the file."""
        return self._inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Shape (n, d); those that the file has, from there.

        Raises:
            EvaluationError: the file can't be read or written.
            ModelError: the embedder failed.
        """
        made = np.empty((len(texts), self.dimension), dtype=np.float32)
        with closing(self._open()) as database:
            keys = [self._key(text) for text in texts]
            missing: list[int] = []
            for n, key in enumerate(keys):
                row = database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is None or len(row[0]) != 4 * self.dimension:
                    missing.append(n)
                else:
                    made[n] = np.frombuffer(row[0], dtype=np.float32)
            for start in range(0, len(missing), _BATCH):
                chosen = missing[start : start + _BATCH]
                made[chosen] = self._inner.embed_passages([texts[n] for n in chosen])
                with database:
                    rows = [(keys[n], made[n].tobytes()) for n in chosen]
                    database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return made

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._inner.name}\0{text}".encode()).digest()

    def _open(self) -> sqlite3.Connection:
        try:
            database = sqlite3.connect(self._file)
            database.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as cause:
            raise EvaluationError(
                f"{self._file} is no file of embeddings: {cause}; remove it, or give another"
            ) from cause
        return database
