"""The trace of a retrieval from a conversation: the five phases, and the slice that they searched."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from meve.conversation.coordinates import Coordinates
from meve.conversation.graph import TurnGraph
from meve.conversation.slices import ClosedBranch, Slice
from meve.pipeline.context import Context
from meve.pipeline.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTrace(Trace):
    """The trace of the five phases, with the slice. The scores of each candidate hold its features and distance."""

    anchor: str
    """The id of the turn at which the question was asked."""
    turns: int
    """The number of turns in the conversation."""
    admitted: int
    """The number of turns in the slice."""
    closed: tuple[ClosedBranch, ...]
    """The branches beside the slice, and why each is closed."""
    coordinates: Mapping[str, Mapping[str, float]]
    """The coordinates of the anchor and of each candidate, by id and name, each in [0, 1]."""
    token: str
    """The slice's signature; empty for one that was cut in this process."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data with ids and scores, and no text."""
        data = Trace.to_dict(self)
        data |= {name: getattr(self, name) for name in ("anchor", "turns", "admitted", "token")}
        data["closed"] = tuple(branch._asdict() for branch in self.closed)
        data["coordinates"] = {turn: dict(values) for turn, values in self.coordinates.items()}
        return data


def add_slice(context: Context, cut: Slice, graph: TurnGraph, coordinates: Coordinates) -> Context:
    """Return the context with a trace that tells of the slice."""
    ids = dict.fromkeys([cut.anchor, *(candidate.id for candidate in context.trace.candidates)])
    trace = ConversationTrace(
        **{field.name: getattr(context.trace, field.name) for field in fields(Trace)},
        anchor=cut.anchor,
        turns=len(graph),
        admitted=len(cut.turns),
        closed=cut.closed,
        coordinates={turn: coordinates.of(graph.position(turn)) for turn in ids},
        token=cut.token,
    )
    return replace(context, trace=trace)
