"""A small context and its trace: priorities, anchors, windows, and what was dropped and why."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from meve.conversation.importance import TurnWindow
from meve.dialogue._token_budget import ContextText, Priority
from meve.dialogue._turn_passages import TurnPassage
from meve.dialogue.dialogue import DialogueSnapshot
from meve.pipeline.context import Context
from meve.pipeline.trace import CandidateTrace, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedTurn:
    """A turn, or a part of a long one, that was ranked and isn't in the text. Each appears once."""

    turn: int
    """Position in the dialogue, from 0."""
    id: str
    reason: str
    """`below_threshold`, `redundant_with:<id>`, `over_budget`; `no_room_for_recent` for one of the last turns."""
    score: float | None
    """Score that was compared with the threshold, even of one of the last turns; None where there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTrace(Trace):
    """The trace of the five phases, with what is specific to dialogues."""

    turns: int
    """Number of turns in the dialogue."""
    anchors: tuple[int, ...]
    """Positions of turns that name something."""
    windows: tuple[TurnWindow, ...]
    """The windows around anchors that were searched."""
    outside: int
    """Number of turns, or parts of long ones, outside of the windows."""
    unlisted: int
    """Number of turns inside, or parts of long ones, that were not ranked since enough others are nearer or later."""
    blank: int
    """Number of turns without text."""
    priorities: tuple[Priority, ...]
    """The three parts of the text, the most important first."""
    dropped: tuple[DroppedTurn, ...]
    """Turns that were ranked and left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data with positions and scores, and no text."""
        data = Trace.to_dict(self)
        data |= {name: getattr(self, name) for name in ("turns", "anchors", "windows", "outside", "unlisted", "blank")}
        data["priorities"] = tuple(asdict(priority) for priority in self.priorities)
        data["dropped"] = tuple(asdict(turn) for turn in self.dropped)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContext(Context):
    """The text for a small model. Its passages are the facts, in the order of the dialogue."""

    trace: SmallTrace
    recent: tuple[TurnPassage, ...]
    """The last turns that are in the text."""

    @property
    def facts(self) -> str:
        """The facts alone, one turn a line, in the order of the dialogue."""
        return "\n".join(passage.passage.prompt_text for passage in self.passages)


def assemble_context(
    context: Context,
    text: ContextText,
    snapshot: DialogueSnapshot,
    windows: Sequence[TurnWindow],
    inside: npt.NDArray[np.bool_],
    crowded: Sequence[TurnPassage],
    max_tokens: int,
) -> SmallContext:
    """Combine the result of the five phases and the text into a small context.

    Args:
        context: result of the five phases.
        text: the text and its contents.
        snapshot: the dialogue.
        windows: the windows that were searched.
        inside: for each passage, whether it lies in one of them; shape (m,).
        crowded: the last turns that didn't fit.
        max_tokens: the limit.
    """
    facts = tuple(passage for passage, _ in text.facts)
    ranks = {passage.passage.id: n for n, passage in enumerate(facts, 1)}
    candidates = tuple(_settle(c, ranks, text.squeezed) for c in context.trace.candidates)
    scores = {c.id: _score(c) for c in candidates}
    late = {passage.id: passage.turn for passage in crowded if passage.id not in ranks}
    dropped = [c for c in candidates if c.fate == "dropped" and c.reason != "shown_already" and c.id not in late]
    listed = {*scores, *late, *(passage.id for passage in text.recent)}
    over = sum(c.reason == "over_budget" for c in dropped)
    trace = SmallTrace(
        **{f.name: getattr(context.trace, f.name) for f in fields(Trace) if f.name != "candidates"},
        candidates=tuple(sorted(candidates, key=lambda c: c.rank if c.rank is not None else len(candidates) + 1)),
        turns=len(snapshot.turns),
        anchors=tuple(np.flatnonzero(snapshot.anchors).tolist()),
        windows=tuple(windows),
        outside=int((~inside).sum()),
        unlisted=int(inside.sum()) - sum(bool(inside[row]) for row in map(snapshot.row, listed)),
        blank=len(snapshot.turns) - int(np.count_nonzero(np.diff(snapshot.owners, prepend=-1))),
        priorities=_priorities(text, len(late), over),
        dropped=(
            *(DroppedTurn(turn=n, id=i, reason="no_room_for_recent", score=scores.get(i)) for i, n in late.items()),
            *(
                DroppedTurn(turn=int(c.id.partition(".")[0]), id=c.id, reason=c.reason, score=scores[c.id])
                for c in dropped
            ),
        ),
    )
    return SmallContext(
        query=context.query,
        text=text.text,
        tokens=text.tokens,
        max_tokens=max_tokens,
        sufficient=bool(facts) and context.sufficient,
        sufficiency=context.sufficiency,
        passages=facts,
        trace=trace,
        recent=text.recent,
    )


def _settle(candidate: CandidateTrace, ranks: dict[str, int], squeezed: Sequence[str]) -> CandidateTrace:
    if candidate.id in ranks:
        return replace(candidate, rank=ranks[candidate.id])
    if candidate.id in squeezed:
        return replace(candidate, fate="dropped", phase="budget", reason="over_budget", rank=None)
    return candidate


def _score(candidate: CandidateTrace) -> float | None:
    return candidate.scores.get("relevance", candidate.scores.get("similarity"))


def _priorities(text: ContextText, crowded: int, over: int) -> tuple[Priority, ...]:
    fact_tokens = text.tokens - text.query_tokens - text.recent_tokens
    recent = tuple(dict.fromkeys(passage.turn for passage in text.recent))
    facts = tuple(dict.fromkeys(passage.turn for _, passage in text.facts))
    return (
        Priority(priority=1, what="query", tokens=text.query_tokens, turns=(), left_out=0),
        Priority(priority=2, what="recent", tokens=text.recent_tokens, turns=recent, left_out=crowded),
        Priority(priority=3, what="facts", tokens=fact_tokens, turns=facts, left_out=over),
    )
