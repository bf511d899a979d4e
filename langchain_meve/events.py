"""What the phases did, told to whoever listens: as custom events, or as runs of their own."""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig, RunnableLambda

from meve.context import Context

PHASE, TRACE = "meve.phase", "meve.trace"


def told(context: Context, *, text: bool) -> list[tuple[str, dict[str, Any]]]:
    """An event for each phase, and one for what became of the candidates; no text, unless asked."""
    trace = context.trace.to_dict()
    events = [(PHASE, dict(phase)) for phase in trace.pop("phases")]
    trace |= {"tokens_used": context.tokens, "sufficient": context.sufficient}
    if text:
        trace |= {"query": context.query, "text": context.text}
    return [*events, (TRACE, trace)]


def tell(context: Context, run: CallbackManagerForRetrieverRun, *, text: bool, runs: bool) -> None:
    """Dispatch them under the retriever's run; nothing is made where nobody listens."""
    if not run.handlers:
        return
    for name, data in told(context, text=text):
        if runs and name == PHASE:
            named: RunnableConfig = {"callbacks": run.get_child(), "run_name": f"meve.{data['name']}"}
            _as_run(data).invoke(_counts(data), named)
        dispatch_custom_event(name, data, config={"callbacks": run.get_child()})


async def atell(context: Context, run: AsyncCallbackManagerForRetrieverRun, *, text: bool, runs: bool) -> None:
    """The same where there is an event loop."""
    if not run.handlers:
        return
    for name, data in told(context, text=text):
        if runs and name == PHASE:
            named: RunnableConfig = {"callbacks": run.get_child(), "run_name": f"meve.{data['name']}"}
            await _as_run(data).ainvoke(_counts(data), named)
        await adispatch_custom_event(name, data, config={"callbacks": run.get_child()})


def _as_run(phase: Mapping[str, Any]) -> RunnableLambda[dict[str, Any], dict[str, Any]]:
    return RunnableLambda(lambda _: dict(phase))


def _counts(phase: Mapping[str, Any]) -> dict[str, Any]:
    return {"received": phase["received"]}
