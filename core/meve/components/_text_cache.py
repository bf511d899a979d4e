"""A cache of what models computed for texts."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from cachetools import LRUCache

from meve._fork_safety import ForkSafeLock
from meve.errors import ConfigurationError

V = TypeVar("V")
Texts: TypeAlias = tuple[str, ...]


class TextCache(Generic[V]):
    """A least-recently-used cache of values, keyed by a hash of one or more texts. Threads may share it.

    Args:
        cache_size: how many values are cached at most; 0 for none.

    Raises:
        ConfigurationError: `cache_size` is negative.
    """

    def __init__(self, cache_size: int) -> None:
        if cache_size < 0:
            raise ConfigurationError(f"cache_size must be 0 (no cache) or positive, got {cache_size}")
        self._values: LRUCache[bytes, V] = LRUCache(cache_size)
        self._lock = ForkSafeLock(self._reset)

    def _reset(self) -> None:
        self._values = LRUCache(self._values.maxsize)

    def __len__(self) -> int:
        return len(self._values)

    def fetch(self, keys: Sequence[Texts], compute: Callable[[Sequence[Texts]], Sequence[V]]) -> list[V]:
        """Return the value of each key, in the order given; compute those that aren't cached, each once."""
        hashes = {key: _hash_texts(key) for key in keys}
        with self._lock:
            values = {key: self._values[digest] for key, digest in hashes.items() if digest in self._values}
        missing = [key for key in hashes if key not in values]
        if missing:
            computed = dict(zip(missing, compute(missing), strict=True))
            values |= computed
            self.put(computed)
        return [values[key] for key in keys]

    def has(self, keys: Sequence[Texts]) -> list[bool]:
        """Return for each key whether its value is cached."""
        hashes = [_hash_texts(key) for key in keys]
        with self._lock:
            return [digest in self._values for digest in hashes]

    def put(self, values: Mapping[Texts, V]) -> None:
        """Add values by their keys."""
        if self._values.maxsize:
            hashed = {_hash_texts(key): value for key, value in values.items()}
            with self._lock:
                self._values.update(hashed)


def _hash_texts(texts: Texts) -> bytes:
    # the lengths separate ("ab", "c") from ("a", "bc")
    whole = "".join(f"{len(text)}\0{text}" for text in texts)
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()
