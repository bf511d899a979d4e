"""Remembers the vectors of passages that others keep, so that none is embedded anew for each question."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from meve._vectors import checked_vectors
from meve.ports import Embedder
from meve.types import FloatArray, Similarity

BOUND = 4_096
"""Vectors that are remembered; of 384 numbers each they take 6 MB."""


class RememberingEmbedder:
    """An embedder whose passages are embedded once. Threads may share it; what was asked for longest ago goes first.

    Args:
        inner: what embeds.
        bound: how many vectors it holds at most.
    """

    def __init__(self, inner: Embedder, bound: int = BOUND) -> None:
        self.inner = inner
        self._bound = bound
        self._vectors: OrderedDict[bytes, FloatArray] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The inner one's."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """The inner one's."""
        return self.inner.dimension

    @property
    def similarity(self) -> Similarity:
        """The inner one's."""
        return self.inner.similarity

    def embed_query(self, text: str) -> FloatArray:
        """As the inner one; not remembered."""
        return self.inner.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        """Passages, shape (n, d), in the order given; those that are remembered aren't embedded.

        Raises:
            VectorError: the inner one returned something else than finite vectors of its dimension.
        """
        if not len(texts):
            return self.inner.embed_passages(texts)
        keys = [_key(text) for text in texts]
        made = self._known(keys)
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in made}
        if fresh:
            vectors = self.inner.embed_passages(list(fresh.values()))
            vectors = checked_vectors(vectors, (len(fresh), self.dimension), f"embedder {self.name!r}")
            made |= zip(fresh, vectors, strict=True)
            self._keep(fresh, vectors)
        return np.array([made[key] for key in keys], dtype=np.float32)

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        return found

    def _keep(self, keys: Iterable[bytes], vectors: FloatArray) -> None:
        with self._lock:
            for key, vector in zip(keys, vectors, strict=True):
                self._vectors[key] = vector.copy()  # a row of a batch would keep the batch
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._bound:
                self._vectors.popitem(last=False)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
