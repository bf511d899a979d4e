"""The search indexes of all users in memory."""

import threading
from collections import OrderedDict

from meve.memory._recall.user_index import UserIndex
from meve.memory.stores._record_store import RecordStore


class UserIndexes:
    """The users' indexes in memory, updated from the store on each use; the least recently used are dropped first.

    Args:
        store: the records to index.
        dimension: the length of a vector.
        max_vectors: the maximum number of vectors of all users; a single user's index may be larger.
    """

    def __init__(self, store: RecordStore, dimension: int, max_vectors: int) -> None:
        self._store = store
        self._dimension = dimension
        self._max_vectors = max_vectors
        self._indexes: OrderedDict[str, UserIndex] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, user: str) -> UserIndex:
        """Return a user's index, updated from the store."""
        with self._guard:
            index = self._indexes.setdefault(user, UserIndex(self._dimension))
            self._indexes.move_to_end(user)
        with index.lock:
            if self._store.version(user) != index.version:
                index.apply(self._store.changes(user, index.version))
        self._shrink(user)
        return index

    def refresh(self, user: str) -> None:
        """Update a user's index if it is in memory."""
        with self._guard:
            is_held = user in self._indexes
        if is_held:
            self.of(user)

    def drop(self, user: str) -> None:
        """Drop a user's index."""
        with self._guard:
            self._indexes.pop(user, None)

    def _shrink(self, kept: str) -> None:
        # not an LRUCache: indexes grow after they are added, and it would keep their old sizes
        with self._guard:
            total = sum(index.vectors for index in self._indexes.values())
            while total > self._max_vectors and len(self._indexes) > 1:
                user, index = next(iter(self._indexes.items()))
                if user == kept:
                    break
                del self._indexes[user]
                total -= index.vectors
