"""What the phases did, for whoever listens; nothing for nobody, and no text unless asked."""

import asyncio
import json

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from langchain_meve import MeVeCompressor, create_meve_tool
from langchain_meve import _callback_events as events
from meve.errors import ModelError

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
        assert [data["name"] for name, data, _ in listener.told if name == events.PHASE_EVENT] == PHASES
        assert {run for *_, run in listener.told} == set(listener.retrievers)
        assert all("ms" in data for name, data, _ in listener.told if name == events.PHASE_EVENT)


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


def test_a_phase_that_fails_is_told_and_those_before_it_too(retriever, monkeypatch):
    """As it happens, and not only when all is well."""
    listener = Listener()
    monkeypatch.setattr(retriever.engine.verifier, "score", lambda query, passages: 1 / 0)
    with pytest.raises(ModelError):
        retriever.model_copy(update={"trace_phases": True}).invoke(BLUE, {"callbacks": [listener]})
    told = [(data["name"], data["skipped"]) for name, data, _ in listener.told]
    assert told == [("retrieve", ""), ("verify", "failed: ModelError")]


def test_runs_of_phases_last_as_long_as_the_phases(retriever, monkeypatch):
    """They are under way while the phase is."""
    listener, under_way = Listener(), []
    whole = retriever.engine.verifier.score

    def score(query, passages):
        under_way.extend(name for name, _ in listener.runs)
        return whole(query, passages)

    monkeypatch.setattr(retriever.engine.verifier, "score", score)
    retriever.model_copy(update={"trace_phases": True}).invoke(BLUE, {"callbacks": [listener]})
    assert under_way == ["meve.retrieve", "meve.verify"]


def test_tool_and_compressor_tell_too(retriever, parts, documents):
    """The tool's retrieval is a run under the tool's."""
    listener = Listener()
    create_meve_tool(retriever).invoke({"query": BLUE}, {"callbacks": [listener]})
    assert len(listener.retrievers) == 1
    assert [data["name"] for name, data, _ in listener.told if name == events.PHASE_EVENT] == PHASES
    listener = Listener()
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    stock = RunnableLambda(lambda question: documents)
    compression = retrievers.ContextualCompressionRetriever(
        base_compressor=MeVeCompressor.make(**parts), base_retriever=stock
    )
    compression.invoke(BLUE, {"callbacks": [listener]})
    assert [data["name"] for name, data, _ in listener.told if name == events.PHASE_EVENT] == PHASES


def test_where_nobody_listens_nothing_is_made(retriever, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("nobody listens")

    monkeypatch.setattr(events.PhaseEventEmitter, "__init__", never)
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
    assert [
        e["data"]["name"] for e in seen if e["event"] == "on_custom_event" and e["name"] == events.PHASE_EVENT
    ] == PHASES
