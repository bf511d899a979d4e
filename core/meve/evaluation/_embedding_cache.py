"""Embeddings kept on disk, so that no evaluation embeds a passage that an earlier one has embedded."""

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

PROBE = "Which weights are these?"
"""What tells a model's weights from others under its name: its vector is kept beside those of the passages."""
_BATCH = 256
"""Texts that are embedded between two commits: what an interruption costs at most."""


class Around:
    """What stands around an embedder passes for it."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

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


class Once(Around):
    """An embedder that embeds a query once, until it is told to forget.

    For a stock pipeline, that needs the query's vector in several places which know nothing of one another: what is
    timed is to be the pipeline, and not how often a wrapper asks. And for a curve, which asks each question many times,
    and times nothing.
    """

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._known: dict[str, FloatArray] = {}

    def forget(self) -> None:
        """The next query is embedded anew."""
        self._known = {}

    def embed_query(self, text: str) -> FloatArray:
        """Shape (d,)."""
        if text not in self._known:
            self._known[text] = self._inner.embed_query(text)
        return self._known[text]

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Shape (n, d)."""
        return self._inner.embed_passages(texts)


class CachedEmbedder(Around):
    """An embedder whose passage vectors are kept in a file; queries are embedded each time, so that they can be timed.

    The file may be shared by evaluations, one at a time, and by models: it knows texts by model name and SHA-256.
    """

    def __init__(self, inner: Embedder, file: Path) -> None:
        super().__init__(inner)
        self._file = file
        with self._open() as database:
            database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            database.execute("CREATE TABLE IF NOT EXISTS models (name TEXT PRIMARY KEY, probe TEXT)")
            probe = json.dumps([round(value, 3) for value in inner.embed_query(PROBE)[:8].tolist()])
            database.execute("INSERT OR IGNORE INTO models VALUES (?, ?)", (inner.name, probe))
            kept = database.execute("SELECT probe FROM models WHERE name = ?", (inner.name,)).fetchone()[0]
        if kept != probe:
            raise EvaluationError(
                f"{file} holds vectors of other weights that were called {inner.name!r} too: give another --cache"
            )

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
        keys = [self._key(text) for text in texts]
        missing: list[int] = []
        with self._open() as database:
            for n, key in enumerate(keys):
                row = database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is None or len(row[0]) != 4 * self.dimension:
                    missing.append(n)
                else:
                    made[n] = np.frombuffer(row[0], dtype=np.float32)
        for start in range(0, len(missing), _BATCH):
            chosen = missing[start : start + _BATCH]
            made[chosen] = self._inner.embed_passages([texts[n] for n in chosen])
            with self._open() as database:
                rows = [(keys[n], made[n].tobytes()) for n in chosen]
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return made

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._inner.name}\0{text}".encode("utf-8", "surrogatepass")).digest()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=60)) as database, database:
                yield database
        except sqlite3.OperationalError as cause:
            raise EvaluationError(f"embeddings can't be kept in {self._file}: {cause}; give another --cache") from cause
        except sqlite3.DatabaseError as cause:
            raise EvaluationError(f"{self._file} is no file of embeddings: {cause}; give another --cache") from cause
        except OSError as cause:
            raise EvaluationError(f"embeddings can't be kept in {self._file}: {cause.strerror}") from cause
