"""What one system did with one question: what measures are computed from, and what a run keeps on disk."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from meve.evaluation.types import Evidence, Handed

NOTHING = Handed(passages=(), ranked=(), text="", tokens=0)
"""What counts for a system that raised; it says nothing of whether that suffices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One system, one question."""

    question_id: str
    handed: Handed
    ms: float
    """How long the system took, the query's embedding included."""
    error: str = ""
    """What it raised, if it did; it then counts as having handed over nothing."""

    @property
    def ids(self) -> list[str]:
        """The passages in the prompt, in its order."""
        return [p.id for p in self.handed.passages]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"question_id": self.question_id, "ms": self.ms, "error": self.error, "handed": asdict(self.handed)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        handed = dict(data["handed"])
        handed["passages"] = tuple(Evidence(**p) for p in handed["passages"])
        handed["ranked"] = tuple(handed["ranked"])
        return cls(question_id=data["question_id"], ms=data["ms"], error=data["error"], handed=Handed(**handed))
