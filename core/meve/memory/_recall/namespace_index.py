"""An index of items by namespace, so that a prefix is found without a scan of all records."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from meve.memory.items.item import Namespace, namespace_of
from meve.memory.records import MemoryRecord

Positions = npt.NDArray[np.int64]


class NamespaceIndex:
    """Positions of items in a user's index, by namespace. Not thread-safe: the lock of the user's index guards it."""

    def __init__(self) -> None:
        self._positions: dict[Namespace, set[int]] = {}
        self._arrays: dict[Namespace, Positions] = {}
        """Cached arrays of the sets, until they change."""

    def add(self, position: int, record: MemoryRecord) -> None:
        """Add a record; records that aren't items are ignored."""
        namespace = namespace_of(record)
        if namespace is not None:
            self._positions.setdefault(namespace, set()).add(position)
            self._arrays.pop(namespace, None)

    def remove(self, position: int, record: MemoryRecord) -> None:
        """Remove a record; records that aren't items are ignored."""
        namespace = namespace_of(record)
        if namespace is not None:
            positions = self._positions[namespace]
            positions.remove(position)
            self._arrays.pop(namespace, None)
            if not positions:
                del self._positions[namespace]

    def find_under(self, prefix: Namespace) -> Positions:
        """Return the positions of all items in namespaces that begin with a prefix, in no order."""
        arrays = [self._array(namespace) for namespace in self._positions if namespace[: len(prefix)] == prefix]
        return np.concatenate([np.zeros(0, np.int64), *arrays])

    def namespaces(self) -> Iterator[tuple[Namespace, Positions]]:
        """Yield each namespace that contains an item, with the positions of its items."""
        for namespace in self._positions:
            yield namespace, self._array(namespace)

    def _array(self, namespace: Namespace) -> Positions:
        if namespace not in self._arrays:
            positions = self._positions[namespace]
            self._arrays[namespace] = np.fromiter(positions, np.int64, len(positions))
        return self._arrays[namespace]
