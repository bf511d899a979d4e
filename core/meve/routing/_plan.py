"""The values of routing: the tiers, what a question is after, and the plan for reading the memory for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from meve.memory._recall.time_expressions import TimeWindow


class Tier(StrEnum):
    """How much of the memory is read for a question, the lightest first."""

    PROFILE = "profile"
    """Who the user is: standing wishes, pinned and current facts; small."""
    TARGETED = "targeted"
    """One fact or episode: a verified search."""
    DEEP = "deep"
    """Several facts: further searches, complete counts and lists, evidence in order of time."""

    @property
    def heavier(self) -> "Tier | None":
        """The next tier; None after the last."""
        tiers = list(Tier)
        place = tiers.index(self) + 1
        return tiers[place] if place < len(tiers) else None


Intent: TypeAlias = Literal[
    "identity", "preference", "advice", "overview", "fact", "when", "count", "list", "compare", "order", "inference",
    "summary", "task", "chat", "general",
]  # fmt: skip
"""What a question is after."""

TIERS: Mapping[Intent, Tier] = {
    "identity": Tier.PROFILE, "preference": Tier.PROFILE, "advice": Tier.PROFILE, "overview": Tier.PROFILE,
    "fact": Tier.TARGETED,
    "when": Tier.DEEP, "count": Tier.DEEP, "list": Tier.DEEP, "compare": Tier.DEEP, "order": Tier.DEEP,
    "inference": Tier.DEEP, "summary": Tier.DEEP,
    "task": Tier.PROFILE, "chat": Tier.PROFILE, "general": Tier.PROFILE,
}  # fmt: skip
"""The tier of each intent."""
UNGROUNDED: frozenset[Intent] = frozenset({"advice", "task", "chat", "general"})
"""Intents whose answers needn't stand in the memory."""
CONCLUDED: frozenset[Intent] = frozenset({"overview", "inference", "summary"})
"""Intents whose answers are drawn from memories that needn't mention what is asked, so words can't tell their lack."""
COMPLETE: frozenset[Intent] = frozenset({"count", "list", "summary"})
"""Intents for which everything that matches is read, instead of the best."""

DecidedBy: TypeAlias = Literal["rules", "classifier", "llm", "caller", "escalation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    """How the memory is read for a question, and why."""

    question: str
    tier: Tier
    intent: Intent
    confidence: float
    """The estimated probability that the tier is right, in [0, 1]."""
    reason: str
    """Why, in a sentence."""
    decided_by: DecidedBy
    max_tokens: int
    """The token budget of the evidence."""
    period: TimeWindow | None = None
    """The past time that the question names."""
    history: bool = False
    """Whether memories that another one replaced are read, too: for questions about what was before."""
    state: bool = False
    """Whether the question asks for what held at a past time: memories from before that time are read, too."""
    chances: Mapping[Tier, float] = field(default_factory=dict)
    """The estimated probability of each tier."""

    @property
    def is_complete(self) -> bool:
        """Whether everything that matches is read, instead of the best."""
        return self.tier is Tier.DEEP and self.intent in COMPLETE

    @property
    def by_time(self) -> bool:
        """Whether the evidence stands in order of time, instead of relevance."""
        return self.tier is Tier.DEEP and (self.is_complete or not self.state)

    @property
    def needs_memory(self) -> bool:
        """Whether an answer must stand in the memory; not for small talk, tasks, advice or general knowledge."""
        return self.intent not in UNGROUNDED

    @property
    def is_refusable(self) -> bool:
        """Whether memories can turn out to hold no answer, before a language model reads them."""
        return self.needs_memory and self.intent not in CONCLUDED

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, without the question."""
        return {
            "tier": str(self.tier),
            "intent": self.intent,
            "confidence": round(self.confidence, 4),
            "reason": self.reason,
            "decided_by": self.decided_by,
            "max_tokens": self.max_tokens,
            "period": None if self.period is None else self.period.to_dict(),
            "history": self.history,
            "state": self.state,
            "chances": {str(tier): round(chance, 4) for tier, chance in self.chances.items()},
        }
