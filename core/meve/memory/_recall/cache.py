"""The cache of recalls, and the removal of changed and erased records from caches, indexes and deferred reflections."""

from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from meve._fork_safety import ForkSafeLock
from meve.memory._recall.user_indexes import UserIndexes
from meve.memory.records import SHARED
from meve.memory.stores._record_transaction import UserChange

if TYPE_CHECKING:
    from meve.memory._feedback.reflector import Reflector
    from meve.memory._recall.searcher import Recall


def drop_changed(change: UserChange, recalls: "RecallCache", indexes: UserIndexes, reflector: "Reflector") -> None:
    """Drop changed records from caches, indexes and deferred reflections. The store calls it after each commit."""
    recalls.drop(change.user)
    if change.is_forgotten:
        reflector.forget(change.user)
    elif changed := {record.id for record in (*change.erased, *change.overwritten)}:
        reflector.forget(change.user, changed)
    if change.is_forgotten or any(record.kind not in ("item", "message") for record in change.erased):
        indexes.drop(change.user)  # a refreshed index may keep single words of a removed text
    elif change.erased or change.overwritten:
        indexes.refresh(change.user)


class RecallCache:
    """A least-recently-used cache of recalls, each valid until a record of its user or a shared one changes.

    Args:
        size: the maximum number of recalls; 0 for none.
    """

    def __init__(self, size: int) -> None:
        self._recalls: LRUCache[tuple[Any, ...], tuple[tuple[int, ...], Recall]] = LRUCache(size)
        self._guard = ForkSafeLock(self._reset)
        self.hits = 0
        self.misses = 0
        self.drops = 0
        """The number of calls of `drop`."""

    def _reset(self) -> None:
        self._recalls = LRUCache(self._recalls.maxsize)

    def get(self, key: tuple[Any, ...], versions: tuple[int, ...]) -> "Recall | None":
        """Return the recall of a query, if the user's and the shared records still have these versions."""
        with self._guard:
            cached = self._recalls.get(key)
            if cached is None or cached[0] != versions:
                self._recalls.pop(key, None)
                self.misses += 1
                return None
            self.hits += 1
            return cached[1]

    def put(self, key: tuple[Any, ...], versions: tuple[int, ...], recall: "Recall", drops: int) -> None:
        """Cache a recall, unless recalls were dropped meanwhile, since it may hold what was erased.

        Args:
            key: the query's key.
            versions: those of the records that were read.
            recall: the recall.
            drops: `drops` before the records were read.
        """
        with self._guard:
            if self._recalls.maxsize and drops == self.drops:
                self._recalls[key] = (versions, recall)

    def drop(self, user: str) -> None:
        """Drop all recalls of a user, or of all users for the shared key."""
        with self._guard:
            self.drops += 1
            for key in [key for key in self._recalls if user == SHARED or key[0] == user]:
                del self._recalls[key]
