"""What the phases do, told to whoever listens while they do it: as custom events, or as runs of their own."""

from dataclasses import asdict
from typing import Any

from langchain_core.callbacks import CallbackManager, CallbackManagerForChainRun
from langchain_core.callbacks.manager import dispatch_custom_event

from meve.pipeline.context import Context
from meve.pipeline.trace import PhaseTrace

PHASE, TRACE = "meve.phase", "meve.trace"


class Teller:
    """Tells of one retrieval, under the run of whoever retrieves.

    Args:
        child: makes runs under it.
        text: whether the text of query and context is told.
        runs: whether each phase is a run of its own.
    """

    def __init__(self, child: CallbackManager, *, text: bool, runs: bool) -> None:
        self._child = child
        self._text = text
        self._runs = runs
        self._open: CallbackManagerForChainRun | None = None

    def __call__(self, name: str, phase: PhaseTrace | None) -> None:
        """A phase begins (None), or has ended."""
        if phase is None or self._open is None:
            self._open = self._child.on_chain_start(None, {}, name=f"meve.{name}") if self._runs else None
        if phase is None:
            return
        data = asdict(phase)
        if self._open is not None:
            self._open.on_chain_end(data)
            self._open = None
        self._tell(PHASE, data)

    def end(self, context: Context) -> None:
        """What became of the candidates, and whether the context is sufficient."""
        trace = context.trace.to_dict()
        del trace["phases"]
        trace |= {"tokens_used": context.tokens, "sufficient": context.sufficient}
        if self._text:
            trace |= {"query": context.query, "text": context.text}
        self._tell(TRACE, trace)

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        dispatch_custom_event(name, data, config={"callbacks": self._child})


def teller(child: Any, *, text: bool, runs: bool) -> Teller | None:
    """One for those who listen under a run; None where nobody does, and nothing need be made."""
    if not isinstance(child, CallbackManager) or not child.handlers or child.parent_run_id is None:
        return None
    return Teller(child, text=text, runs=runs)
