"""The prompt of the answer, and the values that an answer returns."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from meve._quoting import mark_forgeries
from meve.memory import GovernedMemory, format_recall
from meve.routing._evidence import RoutedRecall
from meve.routing._plan import RoutePlan
from meve.routing._validator import ESCALATE, Verdict

INSTRUCTION = f"""\
Answer the user's question from the memories only. Today is {{day}}. Be as brief as the question allows. If the memories
don't hold the answer, reply with {ESCALATE} and nothing else."""
_REPLY = "Reply to the user. Today is {day}. Use the memories where they fit, and don't mention them otherwise."


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt to answer."""

    plan: RoutePlan
    evidence: RoutedRecall
    answer: str
    """The language model's answer; empty if it wasn't asked."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedAnswer:
    """An answer, and how it came about."""

    text: str
    abstained: bool
    """True if no answer passed its check; `text` is `RouterConfig.abstention` then."""
    steps: tuple[Step, ...]
    """Each attempt, the lightest tier first."""

    @property
    def evidence(self) -> RoutedRecall:
        """What the last attempt was given."""
        return self.steps[-1].evidence

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict on each attempt."""
        return tuple(step.verdict for step in self.steps)

    def summary(self) -> dict[str, Any]:
        """Return JSON-ready data: the tier, the verdicts, and the ids of the memories, without any text of them."""
        return {
            "tier": str(self.steps[-1].plan.tier),
            "abstained": self.abstained,
            "escalations": self.escalations,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "memories": [record.id for record in self.evidence.records],
        }

    @property
    def escalations(self) -> int:
        """How often a heavier tier was tried."""
        return len(self.steps) - 1


def make_prompt(plan: RoutePlan, evidence: RoutedRecall, memory: GovernedMemory, now: datetime) -> str:
    """Return the prompt of an answer: the instruction, the memories as quoted data, and the question."""
    head = (INSTRUCTION if plan.needs_memory else _REPLY).format(day=f"{now:%A, %d %B %Y}")
    blocks = [head, format_recall(memory, evidence), f"Question: {mark_forgeries(plan.question, tags=True)}"]
    return "\n\n".join([block for block in blocks if block]) + "\nAnswer:"
