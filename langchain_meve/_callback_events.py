"""Report the phases of a retrieval to LangChain callbacks, as custom events or as child runs."""

from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, CallbackManagerForChainRun
from langchain_core.callbacks.manager import dispatch_custom_event

from meve.pipeline.context import Context
from meve.pipeline.trace import PhaseTrace

PHASE_EVENT, TRACE_EVENT = "meve.phase", "meve.trace"


@dataclass
class PhaseEventEmitter:
    """Sends the events of one retrieval to the callbacks of the run that it belongs to."""

    callbacks: CallbackManager
    """The child callback manager of that run."""
    include_text: bool
    """Whether events hold the text of query and context."""
    runs: bool
    """Whether each phase is a run of its own."""
    _phase_run: CallbackManagerForChainRun | None = None

    def __call__(self, name: str, phase: PhaseTrace | None) -> None:
        """Report that a phase began (`phase` is None) or ended."""
        if phase is None or self._phase_run is None:
            self._phase_run = self.callbacks.on_chain_start(None, {}, name=f"meve.{name}") if self.runs else None
        if phase is None:
            return
        data = asdict(phase)
        if self._phase_run is not None:
            self._phase_run.on_chain_end(data)
            self._phase_run = None
        self._dispatch(PHASE_EVENT, data)

    def report_context(self, context: Context) -> None:
        """Report the trace of a finished retrieval and whether its context is sufficient."""
        trace = context.trace.to_dict()
        del trace["phases"]
        trace |= {"tokens_used": context.tokens, "sufficient": context.sufficient}
        if self.include_text:
            trace |= {"query": context.query, "text": context.text}
        self._dispatch(TRACE_EVENT, trace)

    def _dispatch(self, name: str, data: dict[str, Any]) -> None:
        dispatch_custom_event(name, data, config={"callbacks": self.callbacks})


def make_event_emitter(callbacks: Any, *, include_text: bool, runs: bool) -> PhaseEventEmitter | None:
    """Return an emitter, or None if no callback handler listens to an enclosing run."""
    if isinstance(callbacks, AsyncCallbackManager):  # as asynchronous callers pass it on to the thread that works
        callbacks = CallbackManager.configure(callbacks)
    if not isinstance(callbacks, CallbackManager) or not callbacks.handlers or callbacks.parent_run_id is None:
        return None
    return PhaseEventEmitter(callbacks, include_text=include_text, runs=runs)
