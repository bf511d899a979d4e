"""Hold the state of one retrieval while its phases run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from meve.pipeline._deadline import Deadline
from meve.pipeline._trace_builder import PhaseResult, TraceBuilder
from meve.pipeline.config import PHASES, RetrieverConfig
from meve.types import Candidate, ContextPassage, Dropped, Query


@dataclass(slots=True, kw_only=True)
class Run:
    """The state that the phases of one retrieval read and change."""

    query: Query
    """The question, misspelt words corrected."""
    asked: str
    """The question as it was asked."""
    config: RetrieverConfig
    trace: TraceBuilder
    deadline: Deadline | None = None
    """The end of the time for verification; None for no end."""
    candidates: list[Candidate] = field(default_factory=list)
    """The candidates that the last phase kept, in its order."""
    retrieved: list[Candidate] = field(default_factory=list)
    """The candidates of phase 1, in its order."""
    judged: dict[str, Candidate] = field(default_factory=dict)
    """Every candidate with a score, by id, whether it was accepted or not."""
    evidence: list[Candidate] = field(default_factory=list)
    """The passages that extended the query in further hops."""
    duplicates: set[str] = field(default_factory=set)
    """The ids of candidates that were dropped as duplicates, or because another contradicts them."""
    copies: list[Dropped] = field(default_factory=list)
    """The candidates that phase 4 dropped: copies of better ones, and those that another one contradicts."""
    find_reason: Callable[[Candidate], str] | None = None
    """Returns why phase 4 drops a candidate, or nothing; None if it has dropped all of these."""
    corrections: dict[str, str] = field(default_factory=dict)
    """The misspelt words of the question, each with the word that is read in its place."""
    unscored: list[Dropped] = field(default_factory=list)
    """The candidates that phase 2 dropped without a score."""

    @property
    def passages(self) -> tuple[ContextPassage, ...]:
        """The candidates as passages of a context."""
        return tuple(
            ContextPassage(
                passage=c.passage,
                score=c.score,
                verified=c.verified,
                origin=c.origin,
                tokens=c.tokens or 0,
                logit=c.scores.get("logit"),
            )
            for c in self.candidates
        )

    def has_time_for(self, candidates: int) -> bool:
        """Return whether that many candidates can be scored before the deadline; True without one."""
        return self.deadline is None or self.deadline.has_time_for(candidates)

    def includes(self, phase: str) -> bool:
        """Return whether the mode runs this phase."""
        return phase in PHASES[self.config.mode]

    def skip(self, phase: str, because: str = "") -> None:
        """Record that a phase leaves the candidates as they are; by default because of the mode."""
        self.trace.skip(phase, candidates=len(self.candidates), because=because or f"mode {self.config.mode}")

    @contextmanager
    def phase(self, name: str, settings: Mapping[str, Any]) -> Iterator[PhaseResult]:
        """Record a phase; the selection that it sets on the yielded result becomes the candidates."""
        with self.trace.phase(name, received=len(self.candidates), settings=settings) as result:
            yield result
        self.candidates = list(result.selection.kept)
