"""What the phases did, for LlamaIndex's instrumentation."""

from dataclasses import asdict
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]

from meve.pipeline.context import Context
from meve.pipeline.trace import Observer, PhaseTrace

dispatcher = get_dispatcher("llama_index_meve")


class MeVePhaseEvent(BaseEvent):
    """A phase, with milliseconds, counts and thresholds."""

    phase: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Its name in traces."""
        return "MeVePhaseEvent"


class MeVeTraceEvent(BaseEvent):
    """What became of each candidate, and whether the context is sufficient; no text of query or nodes."""

    trace: dict[str, Any]
    sufficient: bool
    tokens: int

    @classmethod
    def class_name(cls) -> str:
        """Its name in traces."""
        return "MeVeTraceEvent"


def observer() -> Observer | None:
    """Tells each phase when it ends; None where nobody listens."""
    return _told if listened() else None


def tell(context: Context) -> None:
    """Tell what became of the candidates, if somebody listens."""
    if listened():
        trace = context.trace.to_dict()
        del trace["phases"]
        dispatcher.event(MeVeTraceEvent(trace=trace, sufficient=context.sufficient, tokens=context.tokens))


def listened() -> bool:
    """Whether an event would reach anybody."""
    one: Any = dispatcher
    while one is not None:
        if any(type(handler).__name__ != "NullEventHandler" for handler in one.event_handlers):
            return True
        one = one.parent if one.propagate else None
    return False


def _told(name: str, phase: PhaseTrace | None) -> None:  # noqa: ARG001
    if phase is not None:
        dispatcher.event(MeVePhaseEvent(phase=asdict(phase)))
