"""A NumPy array that grows at its end."""

from typing import Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T", bound=np.generic)


class GrowableArray(Generic[_T]):
    """An array that grows along its first axis in amortised constant time per entry.

    Args:
        values: the first entries.
        by_column: whether each column of a table stands in one piece, which makes operations on a column faster.

    >>> array = GrowableArray(np.array([1, 2]))
    >>> array.put(1, np.array([5, 6, 7]))
    >>> array.values.tolist()
    [1, 5, 6, 7]
    """

    def __init__(self, values: npt.NDArray[_T], *, by_column: bool = False) -> None:
        self._buffer = values
        self._order: Literal["C", "F"] = "F" if by_column else "C"
        self._size = len(values)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[_T]:
        """The entries, as a view that the next `put` may detach from the array."""
        return self._buffer[: self._size]

    def put(self, start: int, values: npt.NDArray[_T]) -> None:
        """Write these values from `start` on and end the array after them.

        The size changes in the last step, so an interrupted call leaves the array as long as it was.
        """
        end = start + len(values)
        if end > len(self._buffer):
            larger = np.empty(
                (max(end, start + start // 2), *self._buffer.shape[1:]), dtype=self._buffer.dtype, order=self._order
            )
            larger[: self._size] = self.values
            self._buffer = larger
        self._buffer[start:end] = values
        self._size = end
