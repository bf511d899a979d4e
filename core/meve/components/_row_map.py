"""Maps row keys to positions 0, 1, 2, …, by which the dense and the lexical indexes number their entries."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from meve._growable_array import GrowableArray
from meve.errors import DuplicateIdError, UnknownIdError, ValidationError
from meve.types import FloatArray, RowArray

_MAX_LOOKUPS = 4096


class RowMap:
    """Assigns each row key the next position; removing a row leaves a hole until `without_holes`.

    Reads change nothing, so threads may read at once. Each change takes effect in its last step, so an interrupted one
    leaves the map as it was. The arrays are authoritative; the dictionary is derived from them.
    """

    def __init__(self, rows: Iterable[int] | RowArray = (), alive: npt.NDArray[np.bool_] | None = None) -> None:
        keys = np.array(rows if isinstance(rows, np.ndarray) else list(rows), dtype=np.int64)
        self._rows = GrowableArray(keys)
        self._alive = GrowableArray(
            np.ones(len(keys), dtype=np.bool_) if alive is None else np.array(alive, dtype=np.bool_)
        )
        self._positions_by_row: dict[int, int] | None = self._map_positions()

    def __len__(self) -> int:
        return len(self._position)

    @property
    def _position(self) -> dict[int, int]:
        """The position of each row; derived again after an interrupted change."""
        positions_by_row = self._positions_by_row
        if positions_by_row is None:
            positions_by_row = self._positions_by_row = self._map_positions()
        return positions_by_row

    def _map_positions(self) -> dict[int, int]:
        live = np.flatnonzero(self.alive)
        return dict(zip(self.rows[live].tolist(), live.tolist(), strict=True))

    @property
    def size(self) -> int:
        """The number of positions assigned, holes included."""
        return len(self._rows.values)

    @property
    def hole_count(self) -> int:
        return self.size - len(self)

    @property
    def rows(self) -> RowArray:
        """The row key of each position, shape (size,)."""
        return self._rows.values

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether each position still holds a row, shape (size,)."""
        return self._alive.values[: self.size]

    def check_new(self, rows: RowArray) -> RowArray:
        """Return the keys as `check_new_rows` does."""
        return check_new_rows(rows, self._position)

    def append(self, rows: RowArray) -> None:
        """Assign the next positions to checked keys; an interruption may leave holes there."""
        self.publish(self.reserve(rows))

    def reserve(self, rows: RowArray) -> int:
        """Assign the next positions to checked keys, as holes until `publish`; return the first position."""
        first = self.size
        self._alive.put(first, np.zeros(len(rows), dtype=np.bool_))
        self._rows.put(first, rows)
        return first

    def publish(self, first: int) -> None:
        """Make the keys visible whose positions were reserved from `first` on."""
        positions_by_row, self._positions_by_row = self._position, None
        positions_by_row.update(zip(self.rows[first:].tolist(), range(first, self.size), strict=True))
        self.alive[first:] = True
        self._positions_by_row = positions_by_row

    def find(self, rows: RowArray) -> npt.NDArray[np.int64]:
        """Return the positions of these keys, shape (n,), in the order given.

        Raises:
            UnknownIdError: a key isn't in the index.
        """
        keys, positions_by_row = as_row_array(rows).tolist(), self._position
        try:
            return np.array([positions_by_row[key] for key in keys], dtype=np.int64)
        except KeyError as missing:
            raise UnknownIdError(f"row {missing.args[0]} doesn't exist in this index of {len(self)} rows") from None

    def remove(self, rows: RowArray) -> npt.NDArray[np.int64]:
        """Turn these unique keys into holes and return their positions.

        Raises:
            UnknownIdError: a key isn't in the index, or is given twice; nothing is removed.
        """
        keys = check_known_rows(rows, self._position).tolist()
        positions_by_row, self._positions_by_row = self._position, None
        positions = np.array([positions_by_row.pop(key) for key in keys], dtype=np.int64)
        self.alive[positions] = False
        self._positions_by_row = positions_by_row
        return positions

    def mask(self, allowed: RowArray | None) -> npt.NDArray[np.bool_] | None:
        """Return which positions may be searched, shape (size,); None for all. Unknown allowed keys are ignored."""
        if allowed is None:
            return self.alive if self.hole_count else None
        keys = as_row_array(allowed)
        if len(keys) > _MAX_LOOKUPS:
            return np.isin(self.rows, keys) & self.alive
        chosen = np.zeros(self.size, dtype=np.bool_)
        positions_by_row = self._position
        chosen[[positions_by_row[key] for key in keys.tolist() if key in positions_by_row]] = True
        return chosen

    def without_holes(self) -> "RowMap":
        """Return a map of the same rows, in the same order, without holes."""
        return RowMap(self.rows[self.alive])


def as_row_array(rows: RowArray) -> RowArray:
    """Return row keys as int64 of shape (n,).

    Raises:
        ValidationError: the keys aren't a one-dimensional array of integers.
    """
    keys = np.asarray(rows)
    if keys.ndim != 1 or (keys.size and not np.issubdtype(keys.dtype, np.integer)):
        raise ValidationError(f"row keys must be int64 of shape (n,), got shape {keys.shape} and type {keys.dtype}")
    return keys.astype(np.int64, copy=False)


def check_new_rows(rows: RowArray, existing: Mapping[int, object]) -> RowArray:
    """Return the keys as int64 of shape (n,), after checking that each is new and unique.

    Raises:
        DuplicateIdError: a key exists already, or is given twice.
        ValidationError: the keys aren't a one-dimensional array of integers.
    """
    keys = as_row_array(rows)
    seen: set[int] = set()
    for key in keys.tolist():
        if key in existing or key in seen:
            problem = "exists already" if key in existing else "is given twice"
            raise DuplicateIdError(f"row {key} {problem}: give each row a unique key")
        seen.add(key)
    return keys


def check_known_rows(rows: RowArray, known: Mapping[int, object]) -> RowArray:
    """Return the keys as int64 of shape (n,), after checking that each exists and is unique.

    Raises:
        UnknownIdError: a key doesn't exist, or is given twice.
        ValidationError: the keys aren't a one-dimensional array of integers.
    """
    keys = as_row_array(rows)
    seen: set[int] = set()
    for key in keys.tolist():
        if key in seen or key not in known:
            problem = "is given twice" if key in seen else "doesn't exist"
            raise UnknownIdError(f"row {key} {problem}: nothing was removed")
        seen.add(key)
    return keys


def select_top(rows: RowArray, scores: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
    """Return the k largest scores with their rows, best first; ties go to the smaller row, also at the cut-off.

    >>> rows, scores = select_top(np.array([9, 4, 7]), np.array([1.0, 1.0, 2.0], dtype=np.float32), 2)
    >>> rows.tolist(), scores.tolist()
    ([7, 4], [2.0, 1.0])
    """
    if k <= 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        at_least = np.flatnonzero(scores >= least)
        rows, scores = rows[at_least], scores[at_least]
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]
