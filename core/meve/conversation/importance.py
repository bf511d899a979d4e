"""Which turns of a conversation matter: those around one that names something.

Source: Design and Verification of a Query-Aware External Memory Pipeline for Small Language Models (Kim et al.), III.A.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from meve.types import Entity

WINDOW = 10
"""Turns before and after an anchor that stay with it. Source: the paper's ±10."""

Window = tuple[int, int]
"""The first and the last turn of a stretch, both within it."""


def names_something(entities: Sequence[Entity], speakers: Collection[str] = ()) -> bool:
    """Whether a turn is an anchor: it has an entity that is more than the name of somebody who is talking.

    Args:
        entities: of the turn.
        speakers: names of those who talk, case folded: to be addressed is no key fact.

    >>> john = Entity(kind="name", text="John", start=4)
    >>> names_something([john]), names_something([john], {"john"})
    (True, False)
    """
    return any(entity.kind != "name" or entity.text.casefold() not in speakers for entity in entities)


def windows(anchors: npt.NDArray[np.bool_] | Sequence[bool], reach: int = WINDOW) -> list[Window]:
    """The stretches within `reach` turns of an anchor; those that touch or overlap are one.

    Args:
        anchors: for each turn in order, whether it is one; shape (n,).
        reach: how many turns before and after stay with it, at least 0.

    >>> windows([False] * 3 + [True] + [False] * 9 + [True], reach=2)
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


def within(stretches: Sequence[Window], count: int) -> npt.NDArray[np.bool_]:
    """For each of so many turns, whether it lies in one of the stretches; shape (count,).

    >>> within([(1, 2)], 4).tolist()
    [False, True, True, False]
    """
    steps = np.zeros(count + 1, dtype=np.int64)
    for first, last in stretches:
        steps[first] += 1
        steps[last + 1] -= 1
    return np.asarray(np.cumsum(steps[:-1]) > 0)
