"""What the phases did, for whoever listens; nothing for nobody, and no text unless asked."""

import asyncio
import json

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from langchain_meve import events

BLUE = "blue sky"
PHASES = ["retrieve", "verify", "fallback", "prioritize", "budget"]


class Listener(BaseCallbackHandler):
    def __init__(self):
        self.told, self.runs, self.retrievers = [], [], []

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.told.append((name, data, run_id))

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self.runs.append((kwargs.get("name"), parent_run_id))

    def on_retriever_start(self, serialized, query, *, run_id, **kwargs):
        self.retrievers.append(run_id)


def heard(retriever, *, asynchronous=False):
    listener = Listener()
    chain = RunnableLambda(lambda question: question) | retriever
    config = {"callbacks": [listener]}
    found = asyncio.run(chain.ainvoke(BLUE, config)) if asynchronous else chain.invoke(BLUE, config)
    assert found
    return listener


def test_each_phase_is_an_event_of_the_retrievers_run(retriever):
    for asynchronous in (False, True):
        listener = heard(retriever, asynchronous=asynchronous)
        assert [data["name"] for name, data, _ in listener.told if name == events.PHASE] == PHASES
        assert {run for *_, run in listener.told} == set(listener.retrievers)
        assert all("ms" in data for name, data, _ in listener.told if name == events.PHASE)


def test_no_text_is_told_unless_asked(retriever):
    told = json.dumps([data for _, data, _ in heard(retriever).told])
    assert "A blue sky today" not in told
    assert BLUE not in told
    asked = json.dumps([data for _, data, _ in heard(retriever.model_copy(update={"trace_text": True})).told])
    assert "A blue sky today" in asked
    assert BLUE in asked


def test_phases_can_be_runs_under_the_retriever(retriever):
    """Which LangSmith shows; under the retriever, not under the chain."""
    listener = heard(retriever.model_copy(update={"trace_phases": True}))
    runs = [(name, parent) for name, parent in listener.runs if (name or "").startswith("meve.")]
    assert [name for name, _ in runs] == [f"meve.{phase}" for phase in PHASES]
    assert {parent for _, parent in runs} == set(listener.retrievers)


def test_where_nobody_listens_nothing_is_made(retriever, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("nobody listens")

    monkeypatch.setattr(events, "told", never)
    assert retriever.invoke(BLUE)
    assert asyncio.run(retriever.ainvoke(BLUE))


def test_astream_events_shows_them(retriever):
    async def streamed():
        return [event async for event in retriever.astream_events(BLUE, version="v2")]

    seen = asyncio.run(streamed())
    assert [e["event"] for e in seen if e["event"].startswith("on_retriever")] == [
        "on_retriever_start",
        "on_retriever_end",
    ]
    assert [e["data"]["name"] for e in seen if e["event"] == "on_custom_event" and e["name"] == events.PHASE] == PHASES
