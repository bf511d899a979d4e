"""Remembers scores, so that a pair isn't read twice: by a hash of query and passage, up to a bound."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from meve.errors import ConfigurationError


class ScoreCache:
    """Raw scores of one model. Threads may share it; the pair that was asked for longest ago goes first.

    Args:
        bound: how many scores it holds at most; 0 for none. A score takes about 150 bytes.

    Raises:
        ConfigurationError: a bound below 0.
    """

    def __init__(self, bound: int) -> None:
        if bound < 0:
            raise ConfigurationError(f"cache_size is {bound}: give 0 for no cache, or a whole number above")
        self.bound = bound
        self._scores: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._scores)

    def known(self, query: str, passages: Sequence[str]) -> list[float | None]:
        """The score of each passage; None where it isn't known."""
        if not self.bound:
            return [None] * len(passages)
        keys = [_key(query, passage) for passage in passages]
        found: list[float | None] = []
        with self._lock:
            for key in keys:
                score = self._scores.get(key)
                if score is not None:
                    self._scores.move_to_end(key)
                found.append(score)
        return found

    def keep(self, query: str, passages: Sequence[str], scores: Sequence[float]) -> None:
        """Remember the scores of passages."""
        if not self.bound:
            return
        keys = [_key(query, passage) for passage in passages]
        with self._lock:
            for key, score in zip(keys, scores, strict=True):
                self._scores[key] = score
                self._scores.move_to_end(key)
            while len(self._scores) > self.bound:
                self._scores.popitem(last=False)


def _key(query: str, passage: str) -> bytes:
    """The query's length keeps ("ab", "c") apart from ("a", "bc")."""
    return hashlib.blake2b(f"{len(query)}\0{query}{passage}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
