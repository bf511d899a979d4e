"""OpenTelemetry: spans and metrics of retrievals and memories, without content unless it is asked for."""

import asyncio
import json
import subprocess
import sys
from datetime import timedelta

import pytest

from meve import Passage, Retriever, telemetry
from meve.errors import MissingExtraError, ModelError
from meve.memory import Policy
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
from tests.memories import open_memory

recording = pytest.importorskip(
    "tests.recorded", reason="needs the SDK of OpenTelemetry", exc_type=ImportError
).recording

PASSAGES = {
    "nile": "The Nile flows through Egypt.",
    "zyxomma-id": "Zyxomma is a genus of dragonflies.",
    "tomato": "Tomatoes need sun.",
}


@pytest.fixture
def recorded_content():
    with recording(content=True) as made:
        yield made


@pytest.fixture
def retriever():
    return make_retriever(OverlapVerifier())


def make_retriever(verifier):
    passages = [Passage(id=name, text=text) for name, text in PASSAGES.items()]
    return Retriever.from_passages(passages, embedder=WordEmbedder(), verifier=verifier, tokens=WordCounter())


def test_retrieval_is_a_span_with_one_for_each_phase(recorded, retriever):
    with recorded.tracer.start_as_current_span("request") as request:
        context = retriever.retrieve(PASSAGES["nile"])
    [span] = recorded.spans("retrieval")
    assert span.parent.span_id == request.get_span_context().span_id
    assert span.attributes["gen_ai.operation.name"] == "retrieval"
    assert span.attributes["gen_ai.provider.name"] == "meve"
    assert span.attributes["meve.sufficient"] is context.sufficient
    assert span.attributes["meve.verified"] == sum(p.verified for p in context.passages) > 0
    assert span.attributes["meve.tokens"] == context.tokens
    phases = [child.name for child in recorded.spans() if child.parent and child.parent.span_id == span.context.span_id]
    ran = [f"meve.{phase.name}" for phase in context.trace.phases if not phase.skipped]
    assert phases == ["meve.embed", *ran]
    [verify] = recorded.spans("meve.verify")
    [traced] = [phase for phase in context.trace.phases if phase.name == "verify"]
    assert (verify.attributes["meve.received"], verify.attributes["meve.returned"]) == (
        traced.received,
        traced.returned,
    )


def test_latencies_and_sufficiency_are_metrics(recorded, retriever):
    for query in (PASSAGES["nile"], PASSAGES["tomato"], "Quantum chromodynamics?"):
        retriever.retrieve(query)
    assert recorded.points("meve.retrievals") == {
        (("meve.sufficient", True),): 2,
        (("meve.sufficient", False),): 1,
    }
    assert recorded.points("meve.phase.duration")[(("meve.phase", "verify"),)] == 3
    operation = (("gen_ai.operation.name", "retrieval"), ("gen_ai.provider.name", "meve"))
    assert recorded.points("gen_ai.client.operation.duration") == {operation: 3}


def test_content_leaves_the_process_only_if_it_is_asked_for(recorded, retriever, file):
    use_both(retriever, file)
    told = recorded.everything()
    for word in ("Zyxomma", "zyxomma", "dragonfl", "secretuser", "tea-id", "session-id", "likes"):
        assert word not in told


def test_content_on_request_is_queries_ids_and_scores(recorded_content, retriever, file):
    use_both(retriever, file)
    [retrieval] = [s for s in recorded_content.spans("retrieval") if s.parent is None]
    assert retrieval.attributes["gen_ai.retrieval.query.text"] == "What is Zyxomma?"
    found = json.loads(retrieval.attributes["gen_ai.retrieval.documents"])
    assert found[0]["id"] == "zyxomma-id"
    assert found[0]["score"] > 0
    [search] = recorded_content.spans("search_memory")
    assert search.attributes["gen_ai.memory.query.text"] == "Who likes Zyxomma?"
    assert [each["id"] for each in json.loads(search.attributes["gen_ai.memory.records"])] == ["tea-id"]
    assert "secretuser" not in recorded_content.everything()
    assert "My Zyxomma likes tea" not in recorded_content.everything()


def use_both(retriever, file):
    retriever.retrieve("What is Zyxomma?")
    with open_memory(file) as memory:
        memory.add("My Zyxomma likes tea.", user_id="secretuser", id="tea-id", session_id="session-id")
        memory.search("Who likes Zyxomma?", user_id="secretuser")
        memory.update("tea-id", user_id="secretuser", text="My Zyxomma likes coffee.")
        memory.audit.verify()
        with pytest.raises(Exception, match="zyxomma-id"):
            memory.delete("zyxomma-id", user_id="secretuser")
        memory.forget_user(user_id="secretuser")
        memory.maintain()


def test_memory_operations_are_spans_and_its_log_is_counted(recorded, file):
    with open_memory(file) as memory:
        memory.add("I like tea.", user_id="alice", id="tea")
        memory.supersede("tea", "I like coffee.", user_id="alice", id="coffee")
        recall = memory.search("What do I like?", user_id="alice")
        memory.search("What do I like?", user_id="alice")
        memory.delete("coffee", user_id="alice")
        assert memory.audit.verify().ok
        names = [span.name for span in recorded.spans() if span.parent is None]
        assert names == ["create_memory", "update_memory", "search_memory", "search_memory", "delete_memory"]
        first, second = recorded.spans("search_memory")
        assert first.attributes["gen_ai.memory.record.count"] == len(recall.records) == 1
        assert (first.attributes["meve.cached"], second.attributes["meve.cached"]) == (False, True)
        assert recorded.spans("delete_memory")[0].attributes["gen_ai.memory.record.count"] == 2
        events = recorded.points("meve.memory.events")
        logged = [event.action for event in memory.audit.events()]
        assert events == {(("meve.action", action),): logged.count(action) for action in set(logged)}
        assert recorded.points("meve.audit.verifications") == {(("meve.audit.ok", True),): 1}
        assert recorded.points("meve.audit.entries") == {(): len(logged)}
        assert recorded.points("meve.audit.intact") == {(): 1}


def test_expiries_are_counted(recorded, file, clock):
    with open_memory(file, clock=clock) as memory:
        memory.add("I like tea.", user_id="alice", ttl=timedelta(hours=1))
        clock.advance(timedelta(hours=2))
        memory.maintain()
    assert recorded.points("meve.memory.events")[(("meve.action", "expire"),)] == 1
    [maintained] = recorded.spans("meve.maintain")
    assert maintained.attributes["meve.maintenance.expired"] == 1


def test_broken_log_is_told(recorded, file):
    from tests.memories import run_sql

    with open_memory(file) as memory:
        memory.add("I like tea.", user_id="alice")
    run_sql(file, "UPDATE audit SET reason = 'forged' WHERE seq = 1")
    with open_memory(file) as memory:
        assert not memory.audit.verify().ok
    assert recorded.points("meve.audit.verifications") == {(("meve.audit.ok", False),): 1}
    assert recorded.points("meve.audit.intact") == {(): 0}


def test_shed_work_is_counted(recorded, file):
    """Two other searches are running, of which one is allowed."""
    with open_memory(file, policy=Policy.from_dict({"limits": {"busy": 1}})) as memory:
        memory.add("I like tea.", user_id="alice")
        load = memory._searcher.load
        with load.one_more(), load.one_more():
            recall = memory.search("What do I like?", user_id="alice")
            assert memory.reflect(recall, answer="You like tea.").deferred
    assert recorded.spans("search_memory")[0].attributes["meve.shed"]
    kinds = {(("meve.shed.kind", "search"),): 1, (("meve.shed.kind", "reflection"),): 1}
    assert recorded.points("meve.shed") == kinds


def route(memory, **options):
    from meve.routing import MemoryRouter

    return MemoryRouter(memory, user_id="secretuser", **options)


def test_routed_recall_is_a_span_with_its_tier_and_real_budget(recorded, file):
    with open_memory(file, embedder="static") as memory:
        memory.add("My sister Jana is a nurse.", user_id="secretuser", source="chat_user")
        recall = route(memory).recall("What does my sister do?")
    [search] = recorded.spans("search_memory")
    assert search.attributes["meve.tier"] == recall.plan.tier
    assert search.attributes["meve.sufficient"] is recall.sufficient
    assert search.attributes["gen_ai.memory.record.count"] == len(recall.records) == 1
    assert search.attributes["meve.max_tokens"] == recall.max_tokens
    assert recorded.spans("retrieval")
    for inner in recorded.spans("retrieval"):  # chooses nothing and packs nothing
        assert inner.parent.span_id == search.context.span_id
        assert not {"meve.tokens", "meve.max_tokens"} & inner.attributes.keys()


def test_routed_answer_is_a_span_with_its_escalations_and_the_model_is_a_phase(recorded, file):
    with open_memory(file, embedder="static") as memory:
        memory.add("My sister Jana is a nurse.", user_id="secretuser", source="chat_user")
        answers = [route(memory, llm=llm).answer("What does my sister do?") for llm in (right, wrong, wrong)]
    assert [(a.abstained, a.escalations) for a in answers] == [(False, 0), (True, 1), (True, 1)]
    spans = recorded.spans("meve.answer")
    for span, answer in zip(spans, answers, strict=True):
        assert span.attributes["meve.tier"] == answer.steps[-1].plan.tier
        assert span.attributes["meve.abstained"] is answer.abstained
        assert span.attributes["meve.escalations"] == answer.escalations
    inside = [s for s in recorded.spans("search_memory") if s.parent.span_id in {a.context.span_id for a in spans}]
    assert len(inside) == sum(len(answer.steps) for answer in answers)
    assert len(recorded.spans("meve.llm")) == recorded.points("meve.phase.duration")[(("meve.phase", "llm"),)]
    assert recorded.points("meve.answers") == {
        (("meve.abstained", False), ("meve.tier", "targeted")): 1,
        (("meve.abstained", True), ("meve.tier", "deep")): 2,
    }
    for word in ("sister", "Jana", "nurse", "plumber", "secretuser"):
        assert word not in recorded.everything()


def right(prompt):
    return "nurse"


def wrong(prompt):
    return "plumber"


def test_shed_searches_of_a_router_are_counted(recorded, file):
    policy = Policy.from_dict({"limits": {"busy": 1}})
    with open_memory(file, embedder="static", policy=policy) as memory:
        memory.add("My sister Jana is a nurse.", user_id="secretuser", source="chat_user")
        load = memory._searcher.load
        route(memory).recall("What does my sister do?")
        assert not recorded.points("meve.shed")
        with load.one_more(), load.one_more():
            route(memory).recall("What does my sister do?")
    assert [span.attributes["meve.shed"] for span in recorded.spans("search_memory")] == [False, True]
    assert recorded.points("meve.shed") == {(("meve.shed.kind", "search"),): 1}


def test_items_and_new_messages_are_spans(recorded, file):
    with open_memory(file) as memory:
        memory.items.put(("p",), "k", {"a": "b"}, user_id="alice")
        memory.items.search(("p",), query="b", user_id="alice")
        memory.messages.add("s", [{"text": "Hi."}, {"text": "Ho."}], user_id="alice")
        memory.items.delete(("p",), "k", user_id="alice")
        memory.items.delete_namespace(("p",), user_id="alice")
    found = [
        (span.name, span.attributes.get("gen_ai.memory.record.count", span.attributes.get("meve.deleted")))
        for span in recorded.spans()
        if span.parent is None
    ]
    assert found == [
        ("update_memory", 0), ("search_memory", 1), ("create_memory", 2), ("update_memory", 1), ("delete_memory", 0),
    ]  # fmt: skip


class FailingVerifier(OverlapVerifier):
    def score(self, query, texts):
        raise ValueError(f"no score of {query}")


def test_error_is_told_by_its_type_alone(recorded):
    with pytest.raises(ModelError):
        make_retriever(FailingVerifier()).retrieve("What is Zyxomma?")
    for name in ("meve.verify", "retrieval"):
        [span] = recorded.spans(name)
        assert span.status.status_code.name == "ERROR"
        assert (span.status.description, span.events) == (None, ())
        assert span.attributes["error.type"] == "ModelError"
    assert "Zyxomma" not in recorded.everything()
    [attributes] = recorded.points("gen_ai.client.operation.duration")
    assert ("error.type", "ModelError") in attributes


def test_spans_of_async_calls_and_batches_belong_to_their_callers(recorded, retriever, file):
    async def both():
        with recorded.tracer.start_as_current_span("request"):
            await memory.asearch("What do I like?", user_id="alice")

    with open_memory(file) as memory:
        memory.add("I like tea.", user_id="alice")
        asyncio.run(both())
    [request] = recorded.spans("request")
    [search] = recorded.spans("search_memory")
    assert search.parent.span_id == request.context.span_id
    with recorded.tracer.start_as_current_span("batch") as batch:
        retriever.retrieve_many(["Where does the Nile flow?", "What do tomatoes need?"])
    inner = [span for span in recorded.spans("retrieval") if span.parent.span_id == batch.get_span_context().span_id]
    assert len(inner) == 2


def test_nothing_is_reported_after_the_end(recorded, retriever):
    telemetry.uninstrument()
    retriever.retrieve("Where does the Nile flow?")
    assert recorded.spans() == []


def test_nothing_is_imported_unless_it_is_used():
    code = """
import sys
from meve import Retriever
from meve.memory import GovernedMemory
import meve.telemetry
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder
parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
retriever = Retriever.from_texts(["The Nile flows."], **parts)
retriever.retrieve("Nile?")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_missing_package_is_named(monkeypatch):
    for name in ("opentelemetry", "opentelemetry.trace", "opentelemetry.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'meve\[otel\]'"):
        telemetry.instrument()
