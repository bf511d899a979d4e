"""The graph of a conversation's turns: which turn replies to which, with edits and regenerations as branches."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt

from meve.conversation.turn import Turn
from meve.errors import DuplicateIdError, UnknownIdError, ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTurn(Turn):
    """A turn with its place in a conversation."""

    parents: tuple[str, ...] = ()
    """The ids of the turns that it replies to, the main one first; empty for the beginning of a conversation."""
    phase: str = ""
    """The phase of the work that the turn belongs to, such as `planning`; slices may weigh phases."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnGraph:
    """An immutable graph of turns. A position is a turn's index in `turns`; parents come before their replies.

    >>> graph = TurnGraph.from_turns([PlacedTurn(id="a", text="Hi"), PlacedTurn(id="b", text="Yes?", parents=("a",))])
    >>> graph.parents.tolist(), graph.depths.tolist()
    ([-1, 0], [0, 1])
    """

    turns: tuple[PlacedTurn, ...]
    positions: Mapping[str, int]
    """The position of each turn by its id."""
    parents: npt.NDArray[np.int64]
    """The position of each turn's main parent, -1 for none; shape (n,)."""
    depths: npt.NDArray[np.int64]
    """The number of turns before each one on its main path; shape (n,)."""
    children: tuple[tuple[int, ...], ...]
    """The positions of the replies to each turn, in order; a turn with several parents is a reply to each."""
    siblings: npt.NDArray[np.int64]
    """The rank of each turn among the replies to its main parent, from 0; 0 for a turn without one; shape (n,)."""
    sibling_counts: npt.NDArray[np.int64]
    """The number of replies to its main parent, itself included; 1 for a turn without one; shape (n,)."""
    sizes: npt.NDArray[np.int64]
    """The number of turns in the branch that begins with each turn, along main parents; shape (n,)."""
    seconds: npt.NDArray[np.float64]
    """The time of each turn in seconds; of turns without a time an interpolation; shape (n,). If no turn has a time,
    these are the positions."""

    @classmethod
    def from_turns(cls, turns: Sequence[PlacedTurn]) -> "TurnGraph":
        """Build the graph; the order given is kept, except that parents come before their replies.

        Raises:
            DuplicateIdError: two turns with one id.
            UnknownIdError: a parent that isn't among the turns.
            ValidationError: a turn without an id, or turns that reply to each other in a circle.
        """
        ordered = _sort_parents_first(turns)
        positions = {turn.id: n for n, turn in enumerate(ordered)}
        parents = np.array([positions[t.parents[0]] if t.parents else -1 for t in ordered], dtype=np.int64)
        children: list[list[int]] = [[] for _ in ordered]
        for n, turn in enumerate(ordered):
            for parent in turn.parents:
                children[positions[parent]].append(n)
        depths, siblings = np.zeros(len(ordered), dtype=np.int64), np.zeros(len(ordered), dtype=np.int64)
        counts = np.zeros(len(ordered) + 1, dtype=np.int64)
        for n, parent in enumerate(parents.tolist()):
            if parent >= 0:
                depths[n] = depths[parent] + 1
                siblings[n] = counts[parent]
                counts[parent] += 1
        sizes = np.ones(len(ordered), dtype=np.int64)
        for n in range(len(ordered) - 1, -1, -1):
            if parents[n] >= 0:
                sizes[parents[n]] += sizes[n]
        return cls(
            turns=tuple(ordered),
            positions=positions,
            parents=parents,
            depths=depths,
            children=tuple(map(tuple, children)),
            siblings=siblings,
            sibling_counts=np.where(parents >= 0, counts[parents], 1),
            sizes=sizes,
            seconds=_find_seconds(ordered),
        )

    def __len__(self) -> int:
        return len(self.turns)

    def position(self, turn_id: str) -> int:
        """Return the position of a turn.

        Raises:
            UnknownIdError: no turn has this id.
        """
        try:
            return self.positions[turn_id]
        except (KeyError, TypeError):
            raise UnknownIdError(
                f"there is no turn {turn_id!r:.80}: the conversation has {len(self)} turns, "
                f"such as {', '.join(repr(turn.id) for turn in self.turns[:3])}"
            ) from None

    def all_parents(self, n: int) -> tuple[int, ...]:
        """Return the positions of all parents of a turn, the main one first."""
        return tuple(self.positions[parent] for parent in self.turns[n].parents)

    def replies(self, n: int) -> tuple[int, ...]:
        """Return the positions of the turns whose main parent is this one, in order."""
        return tuple(child for child in self.children[n] if self.parents[child] == n)

    def path(self, n: int) -> list[int]:
        """Return the positions from the beginning of the conversation to a turn, along main parents."""
        path = []
        while n >= 0:
            path.append(n)
            n = int(self.parents[n])
        return path[::-1]


def to_seconds(time: datetime | date | str | None) -> float | None:
    """Return a time as seconds since 1970 in UTC; None if it isn't known or is a text of another format than ISO 8601.

    >>> to_seconds("1970-01-01T00:01:00Z"), to_seconds(date(1970, 1, 2)), to_seconds("yesterday")
    (60.0, 86400.0, None)
    """
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.strip())
        except ValueError:
            return None
    if isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day, tzinfo=UTC)
    if time is None:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _find_seconds(turns: Sequence[Turn]) -> npt.NDArray[np.float64]:
    positions = np.arange(len(turns), dtype=np.float64)
    times = [to_seconds(turn.time) for turn in turns]
    known = [n for n, time in enumerate(times) if time is not None]
    if not known:
        return positions
    return np.interp(positions, known, [time for time in times if time is not None])


def _sort_parents_first(turns: Sequence[PlacedTurn]) -> list[PlacedTurn]:
    given = _index_ids(turns)
    waiting: list[int] = [0] * len(turns)
    replies: list[list[int]] = [[] for _ in turns]
    for n, turn in enumerate(turns):
        for parent in turn.parents:
            if parent not in given:
                raise UnknownIdError(
                    f"turn {turn.id!r:.80} names the parent {parent!r:.80}, which is none of the {len(turns)} turns: "
                    "add the parent, or set parent to None for a beginning"
                )
            replies[given[parent]].append(n)
            waiting[n] += 1
    ready = [n for n, count in enumerate(waiting) if not count]
    ordered: list[PlacedTurn] = []
    while ready:
        n = heapq.heappop(ready)
        ordered.append(turns[n])
        for reply in replies[n]:
            waiting[reply] -= 1
            if not waiting[reply]:
                heapq.heappush(ready, reply)
    if len(ordered) < len(turns):
        circle = ", ".join(repr(turns[n].id)[:80] for n, count in enumerate(waiting) if count)
        raise ValidationError(f"turns must not reply to each other in a circle, nor to themselves: {circle:.400}")
    return ordered


def _index_ids(turns: Sequence[PlacedTurn]) -> dict[str, int]:
    given: dict[str, int] = {}
    for n, turn in enumerate(turns):
        if not isinstance(turn.id, str) or not turn.id.strip():
            raise ValidationError(f"the id of turn {n} is {turn.id!r:.80}: give text that isn't blank")
        if turn.id in given:
            raise DuplicateIdError(
                f"turns {given[turn.id]} and {n} have the same id {turn.id!r:.80}: each turn needs an id of its own"
            )
        given[turn.id] = n
    return given
