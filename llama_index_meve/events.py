"""What the phases did, for LlamaIndex's instrumentation."""

from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]

from meve.context import Context

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


def tell(context: Context) -> None:
    """Dispatch an event for each phase, and one for the whole."""
    trace = context.trace.to_dict()
    for phase in trace.pop("phases"):
        dispatcher.event(MeVePhaseEvent(phase=dict(phase)))
    dispatcher.event(MeVeTraceEvent(trace=trace, sufficient=context.sufficient, tokens=context.tokens))
