"""Decides what a turn of a conversation adds to a memory: the interface of extractors, and the one by rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from meve.conversation import Turn
from meve.memory._classify.fact_extraction import extract_statements
from meve.memory._classify.standing_wishes import is_standing_wish
from meve.memory._write.relative_days import resolve_days
from meve.memory.policy import PolicyClass
from meve.memory.records import MemoryRecord

FactAction: TypeAlias = Literal["add", "update", "supersede", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What an extractor sees of a turn."""

    turn: Turn
    before: tuple[Turn, ...] = ()
    """What the user and the assistant said before, oldest first."""
    near: tuple[MemoryRecord, ...] = ()
    """Memories of the user near the turn, none of them private; empty for `RuleExtractor`. If `TurnRules` names an
    agent or a run, only memories of these."""
    wishes: tuple[str, ...] = ()
    """The standing wishes that the turn may take back, oldest first; only for `RuleExtractor`."""
    now: datetime
    """The time of the memory's clock, in UTC."""

    @property
    def spoken(self) -> date:
        """The day of the turn, if the turn has one, else of the clock."""
        return self.turn.time if isinstance(self.turn.time, date) else self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDecision:
    """What to do with one fact of a turn."""

    action: FactAction
    """`add` a memory; `update` one: replace it by a text that holds the same and more; `supersede` one that no longer
    holds; or do `nothing`."""
    reason: str
    """Why, in a few words."""
    text: str = ""
    """The fact, as a statement that needs no context; empty for `nothing`."""
    id: str | None = None
    """The memory to update or supersede."""
    policy_class: PolicyClass | None = None
    """The class of the new memory; None for that of other turns of this role."""


@runtime_checkable
class FactExtractor(Protocol):
    """Decides what a turn adds to a memory."""

    def extract(self, context: TurnContext) -> Sequence[FactDecision]:
        """Return a decision for each fact of the turn.

        Raises:
            ModelError: a model failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class RuleExtractor:
    """Adds the statements of a turn in English, found by rules; days such as `yesterday` become dates."""

    def extract(self, context: TurnContext) -> Sequence[FactDecision]:
        """Return an `add` for each statement, or one `nothing`.

        >>> from datetime import UTC
        >>> turn = Turn(text="I see. I moved to Oslo yesterday.")
        >>> [d.text for d in RuleExtractor().extract(TurnContext(turn=turn, now=datetime(2026, 5, 20, tzinfo=UTC)))]
        ['I moved to Oslo on 19 May 2026.']
        """
        statements = extract_statements(context.turn.text, context.wishes)
        if not statements:
            return [FactDecision(action="nothing", reason="it states nothing")]
        return [
            FactDecision(action="add", reason="a statement", text=_resolve_days(each, context)) for each in statements
        ]


def _resolve_days(statement: str, context: TurnContext) -> str:
    """Return a statement with dates; a standing wish "from today" holds without one."""
    begins_now = re.match(r"from\s+today\b", statement, re.IGNORECASE) and is_standing_wish(statement)
    return statement if begins_now else resolve_days(statement, context.spoken, context.turn.text)
