"""Writes the trace while the phases run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from meve.clock import Clock
from meve.pipeline.trace import CandidateTrace, Observer, PhaseTrace, Trace
from meve.types import Candidate, Dropped, Selection


class PhaseNotes:
    """What a running phase reports."""

    def __init__(self) -> None:
        self.returned = 0
        self.dropped: Sequence[Dropped] = ()

    def done(self, result: Selection | list[Candidate]) -> list[Candidate]:
        """Note what the phase kept and dropped, and hand on what it kept."""
        if isinstance(result, Selection):
            self.dropped = result.dropped
            result = list(result.kept)
        self.returned = len(result)
        return result


class Recorder:
    """Collects phases and fates of one retrieval. A candidate's last fate is the one that stands."""

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
        yield
        self._embed_ms = _ms(self._clock.elapsed() - start)

    @contextmanager
    def phase(self, name: str, *, received: int, settings: Mapping[str, Any]) -> Iterator[PhaseNotes]:
        """Time a phase, and take down what it reports."""
        notes = PhaseNotes()
        if self._observer:
            self._observer(name, None)
        start = self._clock.elapsed()
        try:
            yield notes
        except Exception as error:
            ms = _ms(self._clock.elapsed() - start)
            why = f"failed: {type(error).__name__}"
            self._tell(
                PhaseTrace(name=name, ms=ms, received=received, returned=0, skipped=why, settings=dict(settings))
            )
            raise
        ms = _ms(self._clock.elapsed() - start)
        for dropped in notes.dropped:
            self._dropped.pop(dropped.candidate.id, None)
            self._dropped[dropped.candidate.id] = (name, dropped)
        done = PhaseTrace(name=name, ms=ms, received=received, returned=notes.returned, settings=dict(settings))
        self._phases.append(done)
        self._tell(done)

    def skip(self, name: str, *, received: int, returned: int, because: str) -> None:
        """Take down that a phase didn't run, and why."""
        done = PhaseTrace(name=name, ms=0.0, received=received, returned=returned, skipped=because)
        self._phases.append(done)
        self._tell(done)

    def _tell(self, phase: PhaseTrace) -> None:
        if self._observer:
            self._observer(phase.name, phase)

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
        """The account of the whole."""
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
            ms=_ms(self._clock.elapsed() - self._start),
            embed_ms=self._embed_ms,
            phases=tuple(self._phases),
            sufficiency=dict(sufficiency),
            candidates=tuple(fates),
        )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _kept(candidate: Candidate, rank: int) -> CandidateTrace:
    reason = "verified" if candidate.verified else candidate.origin if candidate.origin == "fallback" else "unverified"
    return _fate(candidate, "kept", "budget", reason, rank)


def _fate(
    candidate: Candidate, fate: Literal["kept", "dropped"], phase: str, reason: str, rank: int | None = None
) -> CandidateTrace:
    return CandidateTrace(
        id=candidate.id,
        origin=candidate.origin,
        scores=dict(candidate.scores),
        verified=candidate.verified,
        fate=fate,
        phase=phase,
        reason=reason,
        tokens=candidate.tokens,
        rank=rank,
        sentences=candidate.sentences,
    )
