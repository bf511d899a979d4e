"""Row keys on one side, positions 0, 1, 2, … on the other: what every index in this package numbers its entries by."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from meve._growable_array import GrowableArray
from meve.errors import DuplicateIdError, UnknownIdError, ValidationError
from meve.types import FloatArray, RowArray

_FEW = 4096


class RowMap:
    """Gives each row key the next position; a removed one leaves a hole until `compact` closes the ranks.

    Reading changes nothing, so several threads may read at once. A change is made in its last step, whole: whatever
    interrupts it, the map is as before. It goes by the arrays, and what is known besides is derived from them.
    """

    def __init__(self, rows: Iterable[int] | RowArray = (), alive: npt.NDArray[np.bool_] | None = None) -> None:
        keys = np.array(rows if isinstance(rows, np.ndarray) else list(rows), dtype=np.int64)
        self._rows = GrowableArray(keys)
        self._alive = GrowableArray(
            np.ones(len(keys), dtype=np.bool_) if alive is None else np.array(alive, dtype=np.bool_)
        )
        self._known: dict[int, int] | None = self._derived()

    def __len__(self) -> int:
        """How many rows are there."""
        return len(self._position)

    @property
    def _position(self) -> dict[int, int]:
        """Where each row is; derived anew after a change that was interrupted."""
        known = self._known
        if known is None:
            known = self._known = self._derived()
        return known

    def _derived(self) -> dict[int, int]:
        live = np.flatnonzero(self.alive)
        return dict(zip(self.rows[live].tolist(), live.tolist(), strict=True))

    @property
    def size(self) -> int:
        """How many positions are given out, holes included."""
        return len(self._rows.values)

    @property
    def dead(self) -> int:
        """How many positions are holes."""
        return self.size - len(self)

    @property
    def rows(self) -> RowArray:
        """The row key of each position, shape (size,)."""
        return self._rows.values

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether each position still holds its row, shape (size,)."""
        return self._alive.values[: self.size]

    def check_new(self, rows: RowArray) -> RowArray:
        """The keys as int64 of shape (n,), if each is free and given once.

        Raises:
            DuplicateIdError: a key that is taken or given twice.
            ValidationError: keys that are not a row of whole numbers.
        """
        return free_rows(rows, self._position)

    def append(self, rows: RowArray) -> None:
        """Give new keys, checked before, the next positions; interrupted, it may leave holes there."""
        self.settle(self.reserve(rows))

    def reserve(self, rows: RowArray) -> int:
        """Give the next positions away, as holes until `settle`, for keys checked before; returns the first."""
        first = self.size
        self._alive.put(first, np.zeros(len(rows), dtype=np.bool_))
        self._rows.put(first, rows)
        return first

    def settle(self, first: int) -> None:
        """Let the keys be there that were reserved the positions from `first` on."""
        known, self._known = self._position, None
        known.update(zip(self.rows[first:].tolist(), range(first, self.size), strict=True))
        self.alive[first:] = True
        self._known = known

    def find(self, rows: RowArray) -> npt.NDArray[np.int64]:
        """The positions of these keys, shape (n,), in the order given.

        Raises:
            UnknownIdError: a key that isn't there.
        """
        keys, known = as_rows(rows).tolist(), self._position
        try:
            return np.array([known[key] for key in keys], dtype=np.int64)
        except KeyError as missing:
            raise UnknownIdError(f"row {missing.args[0]} isn't in the index, which holds {len(self)} rows") from None

    def drop(self, rows: RowArray) -> npt.NDArray[np.int64]:
        """Make holes of these keys, given once each, and return their positions.

        Raises:
            UnknownIdError: a key that isn't there, or that is given twice; nothing is dropped.
        """
        keys = known_rows(rows, self._position).tolist()
        known, self._known = self._position, None
        positions = np.array([known.pop(key) for key in keys], dtype=np.int64)
        self.alive[positions] = False
        self._known = known
        return positions

    def mask(self, allowed: RowArray | None) -> npt.NDArray[np.bool_] | None:
        """Which positions may be found, shape (size,); None for all. Allowed keys that aren't there don't matter."""
        if allowed is None:
            return self.alive if self.dead else None
        keys = as_rows(allowed)
        if len(keys) > _FEW:
            return np.isin(self.rows, keys) & self.alive
        chosen = np.zeros(self.size, dtype=np.bool_)
        known = self._position
        chosen[[known[key] for key in keys.tolist() if key in known]] = True
        return chosen

    def compacted(self) -> "RowMap":
        """The same rows in the same order, without holes."""
        return RowMap(self.rows[self.alive])


def as_rows(rows: RowArray) -> RowArray:
    """Row keys as int64 of shape (n,).

    Raises:
        ValidationError: something else than a row of whole numbers.
    """
    keys = np.asarray(rows)
    if keys.ndim != 1 or (keys.size and not np.issubdtype(keys.dtype, np.integer)):
        raise ValidationError(f"row keys of shape {keys.shape} and type {keys.dtype}: give int64 of shape (n,)")
    return keys.astype(np.int64, copy=False)


def free_rows(rows: RowArray, taken: Mapping[int, object]) -> RowArray:
    """The keys as int64 of shape (n,), if each is free and given once.

    Raises:
        DuplicateIdError: a key that is taken or given twice.
        ValidationError: something else than a row of whole numbers.
    """
    keys = as_rows(rows)
    seen: set[int] = set()
    for key in keys.tolist():
        if key in taken or key in seen:
            where = "in the index already" if key in taken else "given twice"
            raise DuplicateIdError(f"row {key} is {where}: give each row a key of its own")
        seen.add(key)
    return keys


def known_rows(rows: RowArray, known: Mapping[int, object]) -> RowArray:
    """The keys as int64 of shape (n,), if each is there and given once.

    Raises:
        UnknownIdError: a key that isn't there, or that is given twice.
        ValidationError: something else than a row of whole numbers.
    """
    keys = as_rows(rows)
    seen: set[int] = set()
    for key in keys.tolist():
        if key in seen or key not in known:
            why = "is given twice" if key in seen else "isn't there"
            raise UnknownIdError(f"row {key} {why}, among {len(known)} in the index: nothing was removed")
        seen.add(key)
    return keys


def best(rows: RowArray, scores: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
    """The k largest scores with their rows, best first, equal ones by row, exactly so at the cut-off too.

    >>> rows, scores = best(np.array([9, 4, 7]), np.array([1.0, 1.0, 2.0], dtype=np.float32), 2)
    >>> rows.tolist(), scores.tolist()
    ([7, 4], [2.0, 1.0])
    """
    if k <= 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= least)
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]
