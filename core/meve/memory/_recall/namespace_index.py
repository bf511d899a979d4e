"""Where a shelf's items lie: by namespace, so that a prefix is found without looking at every record."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from meve.memory.items.item import Namespace, namespace_of
from meve.memory.records import MemoryRecord

Positions = npt.NDArray[np.int64]


class Places:
    """Positions of items. Not safe to share: whoever holds the shelf's lock may use it."""

    def __init__(self) -> None:
        self._positions: dict[Namespace, set[int]] = {}
        self._arrays: dict[Namespace, Positions] = {}
        """Of namespaces that were looked at since their last change."""

    def add(self, position: int, record: MemoryRecord) -> None:
        """A record has come there; one that is no item is passed over."""
        namespace = namespace_of(record)
        if namespace is not None:
            self._positions.setdefault(namespace, set()).add(position)
            self._arrays.pop(namespace, None)

    def remove(self, position: int, record: MemoryRecord) -> None:
        """A record has gone from there."""
        namespace = namespace_of(record)
        if namespace is not None:
            mine = self._positions[namespace]
            mine.remove(position)
            self._arrays.pop(namespace, None)
            if not mine:
                del self._positions[namespace]

    def under(self, prefix: Namespace) -> Positions:
        """The positions of all items whose namespace begins so, in no order."""
        found = [self._of(namespace) for namespace in self._positions if namespace[: len(prefix)] == prefix]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def namespaces(self) -> Iterator[tuple[Namespace, Positions]]:
        """Each namespace that holds an item, and the items' positions."""
        for namespace in self._positions:
            yield namespace, self._of(namespace)

    def _of(self, namespace: Namespace) -> Positions:
        if namespace not in self._arrays:
            held = self._positions[namespace]
            self._arrays[namespace] = np.fromiter(held, np.int64, len(held))
        return self._arrays[namespace]
