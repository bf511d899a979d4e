"""The vectors of the passages of long memories in a user's index."""

import numpy as np
import numpy.typing as npt

from meve._formulas import multiply_rows, normalize
from meve._growable_array import GrowableArray
from meve.memory.records import HalfArray
from meve.types import FloatArray


class PassageIndex:
    """Vectors of passages, by the position of their record. Not thread-safe: the lock of the user's index guards it.

    Args:
        dimension: the length d of a vector.
    """

    def __init__(self, dimension: int) -> None:
        self._units = GrowableArray(np.zeros((0, dimension), dtype=np.float32))
        self._owners = GrowableArray(np.zeros(0, dtype=np.int64))
        """The positions of the records, in the order of their passages."""
        self._starts = GrowableArray(np.zeros(0, dtype=np.int64))
        """By record, the row of its first passage."""
        self._spans: dict[int, slice] = {}

    def __len__(self) -> int:
        """Return the number of passages, removed ones included."""
        return len(self._units)

    def add(self, position: int, vectors: HalfArray) -> None:
        """Add the passages of a record, shape (m, d); a record without passages is ignored."""
        if not len(vectors):
            return
        first = len(self._units)
        self._units.put(first, normalize(np.asarray(vectors, dtype=np.float32)))
        self._spans[position] = slice(first, len(self._units))
        self._owners.put(len(self._owners), np.array([position]))
        self._starts.put(len(self._starts), np.array([first]))

    def of(self, position: int) -> HalfArray:
        """Return the passages of a record in half precision, shape (m, d); m is 0 for a record without passages."""
        return self._units.values[self._spans.get(position, slice(0))].astype(np.float16)

    def remove(self, position: int) -> None:
        """Overwrite the passages of a record with zeros."""
        if position in self._spans:
            self._units.values[self._spans.pop(position)] = 0

    def raise_to_best(self, cosines: npt.NDArray[np.float64], unit: FloatArray) -> None:
        """Raise the cosine of each record to that of its best passage.

        Args:
            cosines: by position, at least 0, shape (n,); changed in place.
            unit: the query's vector of length 1, shape (d,).
        """
        if not len(self):
            return
        best = np.maximum.reduceat(multiply_rows(self._units.values, unit), self._starts.values)
        owners = self._owners.values
        cosines[owners] = np.maximum(cosines[owners], best)
