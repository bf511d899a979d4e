"""LlamaIndex instrumentation events for the phases and the trace."""

from dataclasses import asdict
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]

from meve.pipeline.context import Context
from meve.pipeline.trace import Observer, PhaseTrace

dispatcher = get_dispatcher("llama_index_meve")


class MeVePhaseEvent(BaseEvent):
    """One phase: milliseconds, counts and thresholds."""

    phase: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        return "MeVePhaseEvent"


class MeVeTraceEvent(BaseEvent):
    """The outcome of each candidate and whether the context is sufficient, without text of query or nodes."""

    trace: dict[str, Any]
    sufficient: bool
    tokens: int

    @classmethod
    def class_name(cls) -> str:
        return "MeVeTraceEvent"


def phase_observer() -> Observer | None:
    """Return an observer that emits an event per phase; None if nobody listens."""
    return _emit_phase if has_listeners() else None


def emit_trace(context: Context) -> None:
    """Emit the trace of a context if somebody listens."""
    if has_listeners():
        trace = context.trace.to_dict()
        del trace["phases"]
        dispatcher.event(MeVeTraceEvent(trace=trace, sufficient=context.sufficient, tokens=context.tokens))


def has_listeners() -> bool:
    """Return whether any event handler would receive an event."""
    current: Any = dispatcher
    while current is not None:
        if any(type(handler).__name__ != "NullEventHandler" for handler in current.event_handlers):
            return True
        current = current.parent if current.propagate else None
    return False


def _emit_phase(name: str, phase: PhaseTrace | None) -> None:  # noqa: ARG001
    if phase is not None:
        dispatcher.event(MeVePhaseEvent(phase=asdict(phase)))
