"""A cache of verifier scores, keyed by a hash of query and passage."""

import hashlib
import threading
from collections.abc import Sequence

from cachetools import LRUCache

from meve.errors import ConfigurationError


class ScoreCache:
    """A least-recently-used cache of one model's raw scores. Threads may share it.

    Args:
        cache_size: how many scores are cached at most; 0 for none. A score takes about 150 bytes.

    Raises:
        ConfigurationError: `cache_size` is negative.
    """

    def __init__(self, cache_size: int) -> None:
        if cache_size < 0:
            raise ConfigurationError(f"cache_size must be 0 (no cache) or positive, got {cache_size}")
        self.cache_size = cache_size
        self._scores: LRUCache[bytes, float] = LRUCache(cache_size)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._scores)

    def get(self, query: str, passages: Sequence[str]) -> list[float | None]:
        """Return the cached score of each passage; None where there is none."""
        if not self.cache_size:
            return [None] * len(passages)
        keys = [_hash_pair(query, passage) for passage in passages]
        with self._lock:
            return [self._scores.get(key) for key in keys]

    def put(self, query: str, passages: Sequence[str], scores: Sequence[float]) -> None:
        """Cache the scores of passages."""
        if not self.cache_size:
            return
        keys = [_hash_pair(query, passage) for passage in passages]
        with self._lock:
            self._scores.update(zip(keys, scores, strict=True))


def _hash_pair(query: str, passage: str) -> bytes:
    # the query's length separates ("ab", "c") from ("a", "bc")
    return hashlib.blake2b(f"{len(query)}\0{query}{passage}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
