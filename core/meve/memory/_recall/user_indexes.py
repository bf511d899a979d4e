"""The search indexes of users that are in memory, and the embedder by whose vectors each searches."""

import warnings
from collections import Counter, OrderedDict

from meve._fork_safety import ForkSafeLock
from meve.errors import StaleWarning
from meve.memory._embedders import MemoryEmbedders
from meve.memory._recall.user_index import UserIndex
from meve.memory.stores._record_store import RecordStore

_EMBEDDER_CHANGED = (
    "{} holds vectors of {!r}, which this process can't search by: memories with them are found by words alone; open "
    "the memory again with that embedder, or call reembed()"
)


class UserIndexes:
    """The users' indexes in memory, updated from the store on each use; the least recently used are dropped first.

    Args:
        store: the records to index.
        embedders: those whose vectors can be searched.
        max_vectors: the maximum number of vectors of all users; a single user's index may be larger.
    """

    def __init__(self, store: RecordStore, embedders: MemoryEmbedders, max_vectors: int) -> None:
        self._store = store
        self._embedders = embedders
        self._max_vectors = max_vectors
        self._indexes: OrderedDict[str, UserIndex] = OrderedDict()
        self._guard = ForkSafeLock(self._reset)

    def _reset(self) -> None:
        self._indexes = OrderedDict()

    def of(self, user: str) -> UserIndex:
        """Return a user's index, updated from the store."""
        return self.of_all(user)[0]

    def of_all(self, *users: str) -> list[UserIndex]:
        """Return the indexes of some users, updated from the store."""
        return [self._updated(*each) for each in zip(users, self._store.versions(*users), strict=True)]

    def _updated(self, user: str, version: int) -> UserIndex:
        """Return a user's index, updated unless it is of this version."""
        with self._guard:
            index = self._indexes.get(user)
            if index is None:
                index = self._indexes[user] = UserIndex(self._embedders.model)
            self._indexes.move_to_end(user)
        with index.lock:
            if version != index.version:
                self._update(user, index)
        self._shrink(user)
        return index

    def _update(self, user: str, index: UserIndex) -> None:
        changes = self._store.changes(user, index.version)
        if not changes.is_complete and any(s.record.text and s.model != index.model for s in changes.records):
            changes = self._store.changes(user, 0)  # the vectors of another model may be the majority now
        if changes.is_complete:
            models = Counter(s.model for s in changes.records if s.record.text)
            index.model = max(self._embedders.models, key=lambda model: models[model])
            if foreign := sorted(models.keys() - set(self._embedders.models)):
                warnings.warn(
                    _EMBEDDER_CHANGED.format(self._store.backend.name, foreign[0]), StaleWarning, stacklevel=2
                )
        index.apply(changes)

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
