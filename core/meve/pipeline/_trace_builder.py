"""Build the trace of a retrieval while its phases run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from meve._frozen import make_frozen
from meve._telemetry import measure, span
from meve.clock import Clock
from meve.pipeline.phases.fill import FILL, UNRELATED
from meve.pipeline.trace import CandidateTrace, Observer, PhaseTrace, Trace
from meve.types import Candidate, Dropped, Selection


class PhaseResult:
    def __init__(self) -> None:
        self.selection = Selection(kept=())


class TraceBuilder:
    """Collects the phases of one retrieval and the fate of each candidate; the last fate counts.

    A candidate that was never scored keeps the reason for that.
    """

    def __init__(self, clock: Clock, observer: Observer | None = None) -> None:
        self._clock = clock
        self._observer = observer
        self._start = clock.elapsed()
        self._embed_ms = 0.0
        self._phases: list[PhaseTrace] = []
        self._dropped: dict[str, tuple[str, Dropped]] = {}

    @contextmanager
    def embedding(self) -> Iterator[None]:
        """Time the query's embedding."""
        start = self._clock.elapsed()
        with span("meve.embed"):
            yield
        self._embed_ms = self._ms_since(start)
        measure("meve.phase.duration", self._embed_ms / 1000, {"meve.phase": "embed"})

    @contextmanager
    def phase(self, name: str, *, received: int, settings: Mapping[str, Any]) -> Iterator[PhaseResult]:
        """Time a phase and record the selection that it sets on the yielded result."""
        result = PhaseResult()
        if self._observer:
            self._observer(name, None)
        start = self._clock.elapsed()
        facts: dict[str, Any] = {"name": name, "received": received, "settings": dict(settings)}
        try:
            with span(f"meve.{name}", {"meve.received": received}) as reported:
                yield result
                if reported is not None:
                    reported.describe({"meve.returned": len(result.selection.kept)})
        except Exception as error:
            failed = f"failed: {type(error).__name__}"
            self._report(PhaseTrace(**facts, ms=self._ms_since(start), returned=0, skipped=failed))
            raise
        ms = self._ms_since(start)
        for dropped in result.selection.dropped:
            candidate_id = dropped.candidate.id
            before = self._dropped.pop(candidate_id, None)
            if before is not None and dropped.reason == UNRELATED and dropped.candidate.score is None:
                self._dropped[candidate_id] = before
                continue
            self._dropped[candidate_id] = (name, dropped)
        measure("meve.phase.duration", ms / 1000, {"meve.phase": name})
        self._add(PhaseTrace(**facts, ms=ms, returned=len(result.selection.kept)))

    def skip(self, name: str, *, candidates: int, because: str) -> None:
        """Record that a phase didn't run, and why."""
        self._add(PhaseTrace(name=name, ms=0.0, received=candidates, returned=candidates, skipped=because))

    def _add(self, phase: PhaseTrace) -> None:
        self._phases.append(phase)
        self._report(phase)

    def _report(self, phase: PhaseTrace) -> None:
        if self._observer:
            self._observer(phase.name, phase)

    def _ms_since(self, start: float) -> float:
        return round((self._clock.elapsed() - start) * 1000, 3)

    def finish(
        self,
        kept: Sequence[Candidate],
        *,
        mode: str,
        embedder: str,
        verifier: str,
        tokens: str,
        sufficiency: Mapping[str, Any],
    ) -> Trace:
        ids = {c.id for c in kept}
        fates = [_kept(candidate, rank) for rank, candidate in enumerate(kept, start=1)]
        fates += [
            _fate(d.candidate, "dropped", phase, d.reason)
            for phase, d in self._dropped.values()
            if d.candidate.id not in ids
        ]
        return Trace(
            mode=mode,
            embedder=embedder,
            verifier=verifier,
            tokens=tokens,
            ms=self._ms_since(self._start),
            embed_ms=self._embed_ms,
            phases=tuple(self._phases),
            sufficiency=dict(sufficiency),
            candidates=tuple(fates),
        )


def _kept(candidate: Candidate, rank: int) -> CandidateTrace:
    origin = candidate.origin if candidate.origin in ("fallback", FILL) else "unverified"
    reason = "verified" if candidate.verified else origin
    return _fate(candidate, "kept", "budget", reason, rank)


def _fate(
    candidate: Candidate, fate: Literal["kept", "dropped"], phase: str, reason: str, rank: int | None = None
) -> CandidateTrace:
    fields = {
        "id": candidate.passage.id,
        "origin": candidate.origin,
        "scores": candidate.scores,
        "verified": candidate.verified,
        "fate": fate,
        "phase": phase,
        "reason": reason,
        "tokens": candidate.tokens,
        "rank": rank,
        "sentences": candidate.sentences,
    }
    return make_frozen(CandidateTrace, fields)
