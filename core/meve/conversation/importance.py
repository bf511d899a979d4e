"""Important turns of a conversation: anchors, which name something, and the windows around them.

Source: Design and Verification of a Query-Aware External Memory Pipeline for Small Language Models (Kim et al.), III.A.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from meve.types import Entity

DEFAULT_REACH = 10
"""Turns before and after an anchor that belong to its window. Source: the paper's ±10."""

TurnWindow = tuple[int, int]
"""Positions of the first and the last turn of a window, both inclusive."""


def is_anchor(entities: Sequence[Entity], speakers: Collection[str] = ()) -> bool:
    """Check that a turn names something other than its speakers.

    Args:
        entities: those of the turn.
        speakers: case-folded names of the speakers; a turn that only addresses one of them is no anchor.

    >>> john = Entity(kind="name", text="John", start=4)
    >>> is_anchor([john]), is_anchor([john], {"john"})
    (True, False)
    """
    return any(entity.kind != "name" or entity.text.casefold() not in speakers for entity in entities)


def find_windows(anchors: npt.NDArray[np.bool_] | Sequence[bool], reach: int = DEFAULT_REACH) -> list[TurnWindow]:
    """Return the windows around anchors in order; windows that touch or overlap are joined.

    Args:
        anchors: for each turn in order, whether it is an anchor; shape (n,).
        reach: turns before and after an anchor that belong to its window, at least 0.

    >>> find_windows([False] * 3 + [True] + [False] * 9 + [True], reach=2)
    [(1, 5), (11, 13)]
    """
    at = np.flatnonzero(np.asarray(anchors, dtype=np.bool_))
    if not at.size:
        return []
    reach = min(reach, len(anchors))
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach, len(anchors) - 1)
    begins = np.concatenate([[True], first[1:] > last[:-1] + 1])
    ends = np.append(np.flatnonzero(begins)[1:] - 1, at.size - 1)
    return list(zip(first[begins].tolist(), last[ends].tolist(), strict=True))


def mask_windows(windows: Sequence[TurnWindow], count: int) -> npt.NDArray[np.bool_]:
    """Return for each of `count` turns whether it lies in one of the windows; shape (count,).

    >>> mask_windows([(1, 2)], 4).tolist()
    [False, True, True, False]
    """
    steps = np.zeros(count + 1, dtype=np.int64)
    for first, last in windows:
        steps[first] += 1
        steps[last + 1] -= 1
    return np.asarray(np.cumsum(steps[:-1]) > 0)
