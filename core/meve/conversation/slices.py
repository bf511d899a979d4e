"""Admissible slices: the turns that a question at one turn may reach, and the branches that stay closed to it.

Source: RAG++ (Diomande 2026), section 4.3. As published every turn of a connected conversation is admissible; here the
policy bounds the slice.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from meve.conversation.graph import TurnGraph
from meve.errors import AdmissibilityError, ConfigurationError, wrap_errors

Edge: TypeAlias = Literal["parent", "child", "sibling"]
"""A step of the walk: from the anchor's line to a turn before it, from a turn to a reply, or to the next or the
previous reply to the same turn."""

ClosedReason: TypeAlias = Literal["edge", "priority", "max_turns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePolicy:
    """The rules by which a slice is cut.

    The walk begins at the anchor with priority 1. A step multiplies the priority by the weight of its edge and by the
    weight of the next turn's phase; the turn belongs to the slice if the product reaches `min_priority`. The defaults
    admit the anchor and its ancestors only, so that no abandoned branch returns; `paper()` also admits near branches.

    Raises:
        ConfigurationError: a value of the wrong type or out of range.

    >>> SlicePolicy(sibling=1.5)
    Traceback (most recent call last):
    meve.errors.ConfigurationError: sibling must be a number between 0 and 1, got 1.5
    """

    parent: float = 1.0
    """The weight of a step to a parent, in [0, 1]; 0 forbids it, as for the other weights."""
    child: float = 0.0
    """The weight of a step to a reply of the anchor, or of what follows from it."""
    sibling: float = 0.0
    """The weight of a step to the next or the previous reply to the same turn."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """The weight of each phase, in [0, 1]; other phases weigh 1."""
    min_priority: float = 0.5
    """The least priority of a turn in the slice, above 0 and at most 1."""
    max_turns: int | None = None
    """The most turns of a slice, at least 1; None for no limit."""

    def __post_init__(self) -> None:
        if not isinstance(self.phases, Mapping) or not all(isinstance(name, str) for name in self.phases):
            raise ConfigurationError(f"phases must be a mapping of names to weights, got {self.phases!r:.80}")
        weights = {name: getattr(self, name) for name in get_args(Edge)}
        weights |= {f"the weight of phase {name!r:.40}": weight for name, weight in self.phases.items()}
        for name, value in (*weights.items(), ("min_priority", self.min_priority)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be a number between 0 and 1, got {value!r:.40}")
        if not self.min_priority:
            raise ConfigurationError("min_priority must be above 0, got 0: it would admit every turn")
        most = self.max_turns
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise ConfigurationError(f"max_turns must be a whole number of at least 1 or None, got {most!r:.40}")

    @classmethod
    def paper(cls) -> Self:
        """Return the published policy, by which foreign branches fade.

        It admits all ancestors, replies up to six levels below the anchor, and of the ancestors' and the anchor's
        siblings the nearest on either side, but not what follows those.

        >>> SlicePolicy.paper().sibling
        0.5
        """
        return cls(child=0.9, sibling=0.5)


class ClosedBranch(NamedTuple):  # a tuple, since a slice has many, and a frozen dataclass takes four times as long
    """A branch beside the slice that the policy closed."""

    turn: str
    """The id of the first closed turn."""
    beside: str
    """The id of the turn in the slice from which it was seen."""
    edge: Edge
    reason: ClosedReason
    """`edge`: the policy forbids this step; `priority`: the turn's priority is too low; `max_turns`: the slice is
    full."""
    priority: float
    """The turn's priority, in [0, 1]."""
    turns: int
    """The number of its turns: this one and all replies below it, or all turns above it if it is a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The turns that a question at one turn may reach."""

    anchor: str
    policy: SlicePolicy
    turns: tuple[str, ...]
    """The ids of the turns in the order of the conversation."""
    priorities: Mapping[str, float]
    """The priority of each turn, in [0, 1]."""
    closed: tuple[ClosedBranch, ...]
    """The branches beside the slice."""
    token: str = ""
    """The signature of an authority that signs; empty for a slice that was cut in this process."""


class SliceAuthority(Protocol):
    """Decides which turns are admissible. One in another process signs its slices, and its client here checks them."""

    def cut(self, graph: TurnGraph, anchor: str, policy: SlicePolicy) -> Slice:
        """Return the slice for an anchor.

        Raises:
            UnknownIdError: no turn has the anchor's id.
            AdmissibilityError: no slice can be given, or its signature is wrong.
        """


class LocalAuthority:
    """Cuts slices in this process, without a signature."""

    def cut(self, graph: TurnGraph, anchor: str, policy: SlicePolicy) -> Slice:
        """Return the slice for an anchor, as `cut_slice`."""
        return cut_slice(graph, anchor, policy)


def cut_slice(graph: TurnGraph, anchor: str, policy: SlicePolicy, *, max_closed: int | None = None) -> Slice:
    """Walk from the anchor to the turns of the highest priority first, and return the slice.

    A turn is reached from the anchor's line of ancestors only as a sibling, never as a reply: what follows a sibling
    fades. Equal priorities are settled by the fewest steps, then by position.

    Args:
        graph: the conversation.
        anchor: the id of the turn at which the question is asked.
        policy: the rules.
        max_closed: how many closed branches the slice names at most, those with the highest priority; None for all.

    Raises:
        UnknownIdError: no turn has the anchor's id.
    """
    rows = cache(graph.main_replies)  # it may look at all children each time
    admitted, refused = _walk(graph, graph.position(anchor), policy, rows)
    beside = refused | _unseen_siblings(graph, admitted, refused, policy, rows, max_closed)
    if max_closed is not None and len(beside) > max_closed:
        beside = dict(heapq.nsmallest(max_closed, beside.items(), key=lambda item: (-item[1][3], item[0])))
    turns, depths, sizes = graph.turns, graph.depths.data, graph.sizes.data
    closed = tuple([
        ClosedBranch(
            turns[n].id, turns[near].id, edge, reason, priority, depths[n] + 1 if edge == "parent" else sizes[n]
        )
        for n, (near, edge, reason, priority) in sorted(beside.items())
    ])  # fmt: skip
    priorities = {turns[n].id: priority for n, priority in sorted(admitted.items())}
    return Slice(anchor=anchor, policy=policy, turns=tuple(priorities), priorities=priorities, closed=closed)


def ask_authority(
    authority: SliceAuthority, graph: TurnGraph, anchor: str, policy: SlicePolicy
) -> tuple[Slice, npt.NDArray[np.int64]]:
    """Return an authority's slice and the positions of its turns, shape (m,), after checking it as `check_slice` does.

    Raises:
        AdmissibilityError: the authority failed, or its slice doesn't answer this request.
        UnknownIdError: no turn has the anchor's id.
    """
    with wrap_errors(AdmissibilityError, "cutting the slice"):
        cut = authority.cut(graph, anchor, policy)
        return cut, check_slice(cut, graph, anchor, policy)


def check_slice(cut: object, graph: TurnGraph, anchor: str, policy: SlicePolicy) -> npt.NDArray[np.int64]:
    """Return the positions of a slice's turns, after checking that it answers this request; shape (m,).

    Raises:
        AdmissibilityError: no slice, one of another anchor or policy, or one with unknown or repeated turns.
    """
    if not isinstance(cut, Slice):
        raise AdmissibilityError(f"the slice authority must return a Slice, got {type(cut).__name__}")
    if cut.anchor != anchor or cut.policy != policy:
        raise AdmissibilityError(
            f"the slice is for the anchor {cut.anchor!r:.80} and {cut.policy!r:.200}: this question needs one for "
            f"{anchor!r:.80} and {policy!r:.200}"
        )
    unknown = [turn for turn in cut.turns if turn not in graph.positions]
    if unknown or len(set(cut.turns)) < len(cut.turns):
        problem = f"the unknown turn {unknown[0]!r:.80}" if unknown else "a turn twice"
        raise AdmissibilityError(f"the slice for {anchor!r:.80} holds {problem}: cut it again from this conversation")
    return np.array(sorted(graph.positions[turn] for turn in cut.turns), dtype=np.int64)


_Refusal: TypeAlias = tuple[int, Edge, ClosedReason, float]
"""For a closed turn: the position of the turn beside it, the edge between them, the reason, and the priority."""

Side: TypeAlias = Literal["line", "below", "beside"]
"""Where the walk stands: at the anchor or an ancestor, below the anchor, or in another branch."""

_Place: TypeAlias = tuple[float, int, int, Side, int, Edge]
"""A turn that may be admitted next: its negative priority, the steps to it, its position and side, and from where it
was reached over which edge; in order of admission."""

_Rows: TypeAlias = Callable[[int], tuple[int, ...]]


def _walk(
    graph: TurnGraph, anchor: int, policy: SlicePolicy, rows: _Rows
) -> tuple[dict[int, float], dict[int, _Refusal]]:
    admitted: dict[int, float] = {}
    refused: dict[int, _Refusal] = {}
    frontier: list[_Place] = [(-1.0, 0, anchor, "line", anchor, "parent")]
    reach = _reach_from(graph, policy, admitted, refused, frontier)
    parents, replies, siblings = graph.parents.data, graph.replies.data, graph.siblings.data  # faster than NumPy's
    joins, children = graph.joins, graph.children
    while frontier and len(admitted) != policy.max_turns:
        negative, steps, n, side, _, _ = heapq.heappop(frontier)
        if n in admitted:
            continue
        admitted[n] = priority = -negative
        steps += 1
        above = parents[n]
        if side == "line" and above >= 0:
            reach(priority, steps, n, joins.get(n) or (above,), "parent", "line")
        if side != "line" or n == anchor:
            reach(priority, steps, n, children[n], "child", "below" if side == "line" else side)
        if side != "below" and above >= 0 and replies[above] > 1:
            row, at = rows(above), siblings[n]
            reach(priority, steps, n, row[at - 1 : at + 2 : 2] if at else row[1:2], "sibling", "beside")
    for negative, _, n, _, beside, edge in sorted(frontier):  # the slice is full
        refused.setdefault(n, (beside, edge, "max_turns", -negative))
    return admitted, {n: refusal for n, refusal in refused.items() if n not in admitted}


def _reach_from(
    graph: TurnGraph,
    policy: SlicePolicy,
    admitted: Mapping[int, float],
    refused: dict[int, _Refusal],
    frontier: list[_Place],
) -> Callable[[float, int, int, tuple[int, ...], Edge, Side], None]:
    """Return a function that puts a turn's neighbours over one edge into the frontier, or refuses them.

    It takes the turn's priority, the steps to its neighbours, its position, the neighbours, the edge and their side.
    """
    weights: dict[Edge, float] = {"parent": policy.parent, "child": policy.child, "sibling": policy.sibling}
    phases, least, turns = policy.phases, policy.min_priority, graph.turns

    def reach(above: float, steps: int, n: int, neighbours: tuple[int, ...], edge: Edge, side: Side) -> None:
        priority = reached = above * weights[edge]
        for neighbour in neighbours:
            if neighbour in admitted:
                continue
            if phases:
                priority = reached * phases.get(turns[neighbour].phase, 1.0)
            if priority >= least:
                heapq.heappush(frontier, (-priority, steps, neighbour, side, n, edge))
            elif neighbour not in refused or refused[neighbour][3] < priority:
                refused[neighbour] = (n, edge, "priority" if weights[edge] else "edge", priority)

    return reach


def _unseen_siblings(
    graph: TurnGraph,
    admitted: Mapping[int, float],
    refused: Mapping[int, _Refusal],
    policy: SlicePolicy,
    rows: _Rows,
    most: int | None,
) -> dict[int, _Refusal]:
    """Return the closed siblings of admitted turns that the walk didn't come to, since it stops at the first one.

    Each has the priority of the nearest admitted sibling, times `sibling` for each step; those more than `most` steps
    from any are left out, since `most` others have at least their priority.
    """
    unseen: dict[int, _Refusal] = {}
    inside: dict[int, list[int]] = {}
    seen = admitted.keys() | refused.keys()
    parents, replies, siblings = graph.parents.data, graph.replies.data, graph.siblings.data
    for n in admitted:
        above = parents[n]
        if above >= 0 and replies[above] > 1:
            inside.setdefault(above, []).append(siblings[n])
    for parent, places in inside.items():
        row = rows(parent)
        if seen.issuperset(row):
            continue
        for at, nearest in _find_nearest(sorted(places), len(row), len(row) if most is None else most):
            n, beside = row[at], row[nearest]
            if n not in refused:
                priority = admitted[beside] * policy.sibling ** abs(nearest - at)
                unseen[n] = (beside, "sibling", "priority" if policy.sibling else "edge", priority)
    return unseen


def _find_nearest(places: Sequence[int], count: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers below `count` that aren't in `places` but at most `most` from one, each with the nearest one.

    >>> list(_find_nearest([2, 5], 9, 2))
    [(0, 2), (1, 2), (3, 2), (4, 5), (6, 5), (7, 5)]
    """
    yield from ((at, places[0]) for at in range(max(0, places[0] - most), places[0]))
    for low, high in pairwise(places):
        middle = (low + high) // 2 + 1
        yield from ((at, low) for at in range(low + 1, min(middle, low + 1 + most)))
        yield from ((at, high) for at in range(max(middle, high - most), high))
    yield from ((at, places[-1]) for at in range(places[-1] + 1, min(count, places[-1] + 1 + most)))
