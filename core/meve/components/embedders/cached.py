"""An embedder that caches passage vectors, so that texts kept by other stores aren't embedded anew per query."""

from collections.abc import Sequence

import numpy as np

from meve._vectors import validate_vectors
from meve.components._text_cache import TextCache
from meve.components.embedders import find_prompts
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
        self.prompts = find_prompts(inner)
        self._cache = TextCache[FloatArray](cache_size)

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
        return np.array(self._cache.fetch([(text,) for text in texts], self._embed), dtype=np.float32)

    def _embed(self, keys: Sequence[tuple[str, ...]]) -> list[FloatArray]:
        vectors = self.inner.embed_passages([text for (text,) in keys])
        vectors = validate_vectors(vectors, (len(keys), self.dimension), f"embedder {self.name!r}")
        return [vector.copy() for vector in vectors]  # a view of one row would keep the whole batch in memory
