"""Nodes, and fast deterministic components."""

import threading
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_meve import MeVeMemory
from meve import RetrieverConfig
from meve.components.embedders import resolve_embedder
from meve.memory import GovernedMemory, Policy
from meve.testing.fakes import FakeClock, OverlapVerifier, WordCounter, WordEmbedder


def uid(name):
    """Return a UUID, which every store accepts as an id."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def node(name, text, **metadata):
    node = TextNode(id_=uid(name), text=text, metadata=metadata)
    node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = list(metadata)
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc-{name}")
    return node


def ids(nodes):
    return [each.node.node_id for each in nodes]


class Listener(BaseEventHandler):
    received: list = []  # noqa: RUF012 - pydantic's

    def handle(self, event, **kwargs):
        self.received.append(event)


@contextmanager
def listening(listener):
    """Attach a listener to LlamaIndex's root dispatcher, as tracers do."""
    root = get_dispatcher()
    root.add_event_handler(listener)
    try:
        yield listener
    finally:
        root.event_handlers.remove(listener)


@contextmanager
def recording_span_names():
    """Attach a span handler; the set holds the names of the completed spans afterwards."""
    root, spans, names = get_dispatcher(), SimpleSpanHandler(), set()
    root.add_span_handler(spans)
    try:
        yield names
    finally:
        root.span_handlers.remove(spans)
        names |= {span.id_.partition("-")[0] for span in spans.completed_spans}


class RecordingRetriever(BaseRetriever):
    """Returns the same nodes for any query, and records the query texts and the calling threads."""

    def __init__(self, nodes):
        self.nodes, self.queries, self.threads = nodes, [], []
        super().__init__()

    def _retrieve(self, query_bundle):
        self.queries.append(query_bundle.query_str)
        self.threads.append(threading.get_ident())
        return [NodeWithScore(node=n, score=1.0) for n in self.nodes]


@pytest.fixture
def nodes():
    return [
        node("sky", "A blue sky today.", lang="en", year=2001, tags=["air"]),
        node("sea", "The wide sea is blue.", lang="en", year=1999, tags=["water", "salt"]),
        node("zebra", "Zebra facts for you.", lang="de", year=2010, tags=["animal"]),
        node("grass", "Grass under an open sky.", lang="en", year=2020, tags=[]),
    ]


@pytest.fixture
def parts():
    config = RetrieverConfig(redundancy=1.0)
    return {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter(), "config": config}


@pytest.fixture
def clock():
    return FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="session")
def embedder():
    """The shipped embedder, loaded once."""
    return resolve_embedder(None)


@pytest.fixture
def memory(file, clock, embedder):
    """Return a memory in which what a user says lives for a week, and low scores are summarised."""
    policy = Policy.from_dict({"user_ttl": "7d", "merging": {"summarise_below": 30}})
    with GovernedMemory.open(file, clock=clock, embedder=embedder, policy=policy) as opened:
        yield opened


@pytest.fixture
def chat(memory):
    return MeVeMemory(memory, user_id="alice", session_id="s1")
