"""Callback events and runs of the retrieval phases."""

import asyncio
import json

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from langchain_meve import MeVeCompressor, create_meve_tool
from langchain_meve import _callback_events as callback_events
from meve.errors import ModelError

BLUE = "blue sky"
PHASES = ["retrieve", "verify", "fallback", "prioritize", "budget"]


class Listener(BaseCallbackHandler):
    def __init__(self):
        self.events, self.runs, self.retrievers = [], [], []

    def on_custom_event(self, name, data, *, run_id, **kwargs):
        self.events.append((name, data, run_id))

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self.runs.append((kwargs.get("name"), parent_run_id))

    def on_retriever_start(self, serialized, query, *, run_id, **kwargs):
        self.retrievers.append(run_id)


def run_and_listen(retriever, *, asynchronous=False):
    listener = Listener()
    chain = RunnableLambda(lambda question: question) | retriever
    config = {"callbacks": [listener]}
    results = asyncio.run(chain.ainvoke(BLUE, config)) if asynchronous else chain.invoke(BLUE, config)
    assert results
    return listener


def test_each_phase_emits_event_of_retriever_run(retriever):
    for asynchronous in (False, True):
        listener = run_and_listen(retriever, asynchronous=asynchronous)
        assert [data["name"] for name, data, _ in listener.events if name == callback_events.PHASE_EVENT] == PHASES
        assert {run for *_, run in listener.events} == set(listener.retrievers)
        assert all("ms" in data for name, data, _ in listener.events if name == callback_events.PHASE_EVENT)


def test_events_hold_text_only_with_trace_text(retriever):
    without_text = json.dumps([data for _, data, _ in run_and_listen(retriever).events])
    assert "A blue sky today" not in without_text
    assert BLUE not in without_text
    with_text = json.dumps(
        [data for _, data, _ in run_and_listen(retriever.model_copy(update={"trace_text": True})).events]
    )
    assert "A blue sky today" in with_text
    assert BLUE in with_text


def test_trace_phases_creates_child_runs_of_retriever(retriever):
    listener = run_and_listen(retriever.model_copy(update={"trace_phases": True}))
    runs = [(name, parent) for name, parent in listener.runs if (name or "").startswith("meve.")]
    assert [name for name, _ in runs] == [f"meve.{phase}" for phase in PHASES]
    assert {parent for _, parent in runs} == set(listener.retrievers)


def test_failed_phase_emits_event_after_earlier_ones(retriever, monkeypatch):
    listener = Listener()
    monkeypatch.setattr(retriever.retriever.verifier, "score", lambda query, passages: 1 / 0)
    with pytest.raises(ModelError):
        retriever.model_copy(update={"trace_phases": True}).invoke(BLUE, {"callbacks": [listener]})
    phases = [(data["name"], data["skipped"]) for name, data, _ in listener.events]
    assert phases == [("retrieve", ""), ("verify", "failed: ModelError")]


def test_phase_run_is_open_while_phase_runs(retriever, monkeypatch):
    listener, under_way = Listener(), []
    original = retriever.retriever.verifier.score

    def score(query, passages):
        under_way.extend(name for name, _ in listener.runs)
        return original(query, passages)

    monkeypatch.setattr(retriever.retriever.verifier, "score", score)
    retriever.model_copy(update={"trace_phases": True}).invoke(BLUE, {"callbacks": [listener]})
    assert under_way == ["meve.retrieve", "meve.verify"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_tool_and_compressor_emit_phase_events(retriever, parts, documents, asynchronous):
    """The tool's retrieval is a child run of the tool's run."""

    def call(runnable, given):
        config = {"callbacks": [listener]}
        return asyncio.run(runnable.ainvoke(given, config)) if asynchronous else runnable.invoke(given, config)

    listener = Listener()
    call(create_meve_tool(retriever), {"query": BLUE})
    assert len(listener.retrievers) == 1
    assert [data["name"] for name, data, _ in listener.events if name == callback_events.PHASE_EVENT] == PHASES
    listener = Listener()
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    stock = RunnableLambda(lambda question: documents)
    compression = retrievers.ContextualCompressionRetriever(
        base_compressor=MeVeCompressor.make(**parts), base_retriever=stock
    )
    call(compression, BLUE)
    assert [data["name"] for name, data, _ in listener.events if name == callback_events.PHASE_EVENT] == PHASES
    assert {run_id for _, _, run_id in listener.events} == {*listener.retrievers}


def test_no_listener_creates_no_emitter(retriever, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("nobody listens")

    monkeypatch.setattr(callback_events.PhaseEventEmitter, "__init__", never)
    assert retriever.invoke(BLUE)
    assert asyncio.run(retriever.ainvoke(BLUE))


def test_astream_events_yields_phase_events(retriever):
    async def streamed():
        return [event async for event in retriever.astream_events(BLUE, version="v2")]

    events = asyncio.run(streamed())
    assert [e["event"] for e in events if e["event"].startswith("on_retriever")] == [
        "on_retriever_start",
        "on_retriever_end",
    ]
    assert [
        e["data"]["name"]
        for e in events
        if e["event"] == "on_custom_event" and e["name"] == callback_events.PHASE_EVENT
    ] == PHASES
