"""An embedder that caches passage vectors, so that texts kept by other stores aren't embedded anew per query."""

import hashlib
import threading
from collections.abc import Iterable, Sequence

import numpy as np
from cachetools import LRUCache

from meve._vectors import validate_vectors
from meve.ports import Embedder
from meve.types import FloatArray

CACHE_SIZE = 4_096
"""Default number of cached vectors; at 384 dimensions they take 6 MB."""


class CachedEmbedder:
    """An embedder with a least-recently-used cache of passage vectors. Threads may share it.

    Args:
        inner: the embedder that computes the vectors.
        cache_size: how many vectors are cached at most; 0 for none.
    """

    def __init__(self, inner: Embedder, cache_size: int = CACHE_SIZE) -> None:
        self.inner = inner
        self.name, self.similarity = inner.name, inner.similarity
        self._vectors: LRUCache[bytes, FloatArray] = LRUCache(cache_size)
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """The dimension of the inner embedder's vectors, which some must embed a text to know."""
        return self.inner.dimension

    def embed_query(self, text: str) -> FloatArray:
        """Embed a query with the inner embedder, without caching."""
        return self.inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of passages, shape (n, d), and embed only those that aren't cached.

        Raises:
            VectorError: the inner embedder returned something other than finite vectors of its dimension.
        """
        if not len(texts):
            return self.inner.embed_passages(texts)
        keys = [_hash_text(text) for text in texts]
        vectors = self._get_cached(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            embedded = self.inner.embed_passages(list(missing.values()))
            embedded = validate_vectors(embedded, (len(missing), self.dimension), f"embedder {self.name!r}")
            vectors |= zip(missing, embedded, strict=True)
            self._store(missing, embedded)
        return np.array([vectors[key] for key in keys], dtype=np.float32)

    def _get_cached(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        with self._lock:
            return {key: self._vectors[key] for key in keys if key in self._vectors}

    def _store(self, keys: Iterable[bytes], vectors: FloatArray) -> None:
        if not self._vectors.maxsize:
            return
        with self._lock:
            for key, vector in zip(keys, vectors, strict=True):
                self._vectors[key] = vector.copy()  # a view of one row would keep the whole batch in memory


def _hash_text(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
