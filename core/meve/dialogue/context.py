"""A small context, and the account of it: priorities, anchors and windows, what was dropped and why."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from meve.conversation.importance import Window
from meve.dialogue._composition import Composed, Priority
from meve.dialogue.dialogue import Read
from meve.dialogue.turns import Said
from meve.pipeline.context import Context
from meve.pipeline.trace import CandidateTrace, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A turn, or a piece of one, that was looked at and doesn't stand in the text; each of them once."""

    turn: int
    """Its place in the dialogue, from 0."""
    id: str
    reason: str
    """`below_threshold`, `redundant_with:<id>`, `over_budget`; `no_room_for_recent` for one of the last turns."""
    score: float | None
    """The score that the threshold was held against, where one was: the cosine, and what words add. Of one of the last
    turns that had no room as such, and none as a fact, it is that of the fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTrace(Trace):
    """The account of the five phases, and of what is particular to dialogues."""

    turns: int
    """How many the dialogue has."""
    anchors: tuple[int, ...]
    """The places of turns that name something."""
    windows: tuple[Window, ...]
    """The stretches around them that were looked at: first and last turn."""
    outside: int
    """Turns, or pieces of long ones, outside of these."""
    unlisted: int
    """Those inside that were not looked at one by one, since enough others are nearer to the question, or later."""
    blank: int
    """Turns that say nothing."""
    priorities: tuple[Priority, ...]
    """The text's three parts, the most important first."""
    dropped: tuple[LeftOut, ...]
    """What was looked at and left out."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data. Holds places and scores, but no text."""
        made = Trace.to_dict(self)
        made |= {name: getattr(self, name) for name in ("turns", "anchors", "windows", "outside", "unlisted", "blank")}
        made["priorities"] = tuple(asdict(priority) for priority in self.priorities)
        made["dropped"] = tuple(asdict(left) for left in self.dropped)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContext(Context):
    """What a small model is given: its passages are the facts, in the order in which they were said."""

    trace: SmallTrace
    recent: tuple[Said, ...]
    """What was said last, as far as it stands in the text."""

    @property
    def facts(self) -> str:
        """The facts alone, a turn a line, in the order in which they were said."""
        return "\n".join(passage.passage.shown for passage in self.passages)


def accounted(
    context: Context,
    made: Composed,
    read: Read,
    stretches: Sequence[Window],
    inside: npt.NDArray[np.bool_],
    crowded: Sequence[Said],
    max_tokens: int,
) -> SmallContext:
    """A small context of what the phases found and what was composed of it.

    Args:
        context: of the five phases.
        made: the text.
        read: the dialogue.
        stretches: what was looked at.
        inside: of each piece, whether it lies there.
        crowded: which of the last turns had no room.
        max_tokens: the limit.
    """
    facts = tuple(passage for passage, _ in made.facts)
    ranks = {passage.passage.id: n for n, passage in enumerate(facts, 1)}
    candidates = tuple(_settled(c, ranks, made.squeezed) for c in context.trace.candidates)
    scores = {c.id: _score(c) for c in candidates}
    late = {piece.id: piece.turn for piece in crowded if piece.id not in ranks}
    dropped = [c for c in candidates if c.fate == "dropped" and c.reason != "shown_already" and c.id not in late]
    over = sum(c.reason == "over_budget" for c in dropped)
    trace = SmallTrace(
        **{f.name: getattr(context.trace, f.name) for f in fields(Trace) if f.name != "candidates"},
        candidates=tuple(sorted(candidates, key=lambda c: c.rank if c.rank is not None else len(candidates) + 1)),
        turns=len(read.turns),
        anchors=tuple(np.flatnonzero(read.anchors).tolist()),
        windows=tuple(stretches),
        outside=int((~inside).sum()),
        unlisted=_unlisted(read, inside, {*scores, *late, *(piece.id for piece in made.recent)}),
        blank=len(read.turns) - int(np.count_nonzero(np.diff(read.owners, prepend=-1))),
        priorities=_priorities(made, len(late), over),
        dropped=(
            *(LeftOut(turn=n, id=i, reason="no_room_for_recent", score=scores.get(i)) for i, n in late.items()),
            *(LeftOut(turn=int(c.id.partition(".")[0]), id=c.id, reason=c.reason, score=scores[c.id]) for c in dropped),
        ),
    )
    return SmallContext(
        query=context.query,
        text=made.text,
        tokens=made.tokens,
        max_tokens=max_tokens,
        sufficient=bool(facts) and context.sufficient,
        sufficiency=context.sufficiency,
        passages=facts,
        trace=trace,
        recent=made.recent,
    )


def _settled(candidate: CandidateTrace, ranks: dict[str, int], squeezed: Sequence[str]) -> CandidateTrace:
    if candidate.id in ranks:
        return replace(candidate, rank=ranks[candidate.id])
    if candidate.id in squeezed:
        return replace(candidate, fate="dropped", phase="budget", reason="over_budget", rank=None)
    return candidate


def _unlisted(read: Read, inside: npt.NDArray[np.bool_], told: AbstractSet[str]) -> int:
    return int(inside.sum()) - sum(bool(inside[row]) for row in map(read.row, told))


def _score(candidate: CandidateTrace) -> float | None:
    return candidate.scores.get("relevance", candidate.scores.get("similarity"))


def _priorities(made: Composed, crowded: int, over: int) -> tuple[Priority, ...]:
    rest = made.tokens - made.query_tokens - made.recent_tokens
    recent = tuple(dict.fromkeys(said.turn for said in made.recent))
    facts = tuple(dict.fromkeys(said.turn for _, said in made.facts))
    return (
        Priority(priority=1, what="query", tokens=made.query_tokens, turns=(), left_out=0),
        Priority(priority=2, what="recent", tokens=made.recent_tokens, turns=recent, left_out=crowded),
        Priority(priority=3, what="facts", tokens=rest, turns=facts, left_out=over),
    )
