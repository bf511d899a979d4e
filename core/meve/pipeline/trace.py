"""The account of one retrieval: each phase, each candidate, each reason. Data first; pictures are made from it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from meve.types import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTrace:
    """What one phase did."""

    name: str
    """`retrieve`, `verify`, `fallback`, `prioritize` or `budget`; `follow` in a further hop, `condense`."""
    ms: float
    received: int
    """Candidates that came in."""
    returned: int
    """Candidates that went on."""
    skipped: str = ""
    """Why the phase didn't run; empty when it did."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The thresholds, counts and models that it decided by."""


Observer: TypeAlias = Callable[[str, PhaseTrace | None], None]
"""Told of each phase while it happens: its name and None when it begins, its name and what it did when it ends; only
the latter of one that didn't run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTrace:
    """What became of one candidate."""

    id: str
    origin: Origin
    scores: Mapping[str, float]
    verified: bool
    fate: Literal["kept", "dropped"]
    phase: str
    """The phase that decided."""
    reason: str
    """Why it was dropped; for a kept one, why it was let in: `verified`, `fallback` or `unverified`."""
    tokens: int | None
    rank: int | None
    """Its place in the context, from 1; None when dropped."""
    sentences: tuple[int, ...] | None = None
    """Which of its sentences stand in the context, counted from 0; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The account of one retrieval."""

    mode: str
    embedder: str
    verifier: str
    tokens: str
    """The name of the tokenizer that the budget was counted with."""
    ms: float
    """The whole retrieval, the query's embedding included."""
    embed_ms: float
    """The query's embedding."""
    phases: tuple[PhaseTrace, ...]
    sufficiency: Mapping[str, Any]
    """What the context was called sufficient by: the estimator's name, its estimate and the threshold; empty where no
    estimator was at hand, and what is verified decides."""
    candidates: tuple[CandidateTrace, ...]
    """Kept ones first, in the context's order; then dropped ones, by the phase that dropped them."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data. Holds ids and scores, but no text of queries or passages."""
        made = {name: getattr(self, name) for name in _TRACE}
        made["phases"] = tuple(asdict(phase) for phase in self.phases)
        made["sufficiency"] = dict(self.sufficiency)
        made["candidates"] = tuple(  # asdict would copy each number of each
            {name: getattr(c, name) for name in _CANDIDATE} | {"scores": dict(c.scores)} for c in self.candidates
        )
        return made


_TRACE, _CANDIDATE = (tuple(field.name for field in fields(kind)) for kind in (Trace, CandidateTrace))
