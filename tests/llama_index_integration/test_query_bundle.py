"""Query bundles with their own embedding or texts to embed."""

import asyncio
import copy

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_meve import MeVeEmbedding, MeVePostprocessor, MeVeRetriever
from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.conftest import uid
from tests.llama_index_integration.vector_stores import STORES, build_index

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

BLUE = "blue sky"
NARROW = {"sources": "dense", "candidates": 1, "threshold": 0.0, "fallback_k": 0}
"""Options that return the nearest candidate, whatever its score."""


def embedding(text):
    return WordEmbedder().embed_query(text).tolist()


def custom_query(way):
    """Return a query whose embedding is about something else than its text."""
    if way == "embedding":
        return QueryBundle(BLUE, embedding=embedding("zebra facts for you"))
    return QueryBundle(BLUE, custom_embedding_strs=["zebra facts", "for you zebra"])


@pytest.fixture(params=["nodes", *STORES])
def retriever(request, nodes, parts):
    if request.param == "nodes":
        return MeVeRetriever.from_nodes(nodes, **NARROW, **parts)
    return MeVeRetriever.from_index(build_index(request.param, nodes), **NARROW, **parts)


@pytest.mark.parametrize("way", ["embedding", "texts"])
def test_custom_embedding_searches_and_query_text_verifies(way, retriever):
    bundle, plain = custom_query(way), QueryBundle(BLUE)
    before = copy.deepcopy(bundle)
    for result in (retriever.retrieve(bundle), asyncio.run(retriever.aretrieve(bundle))):
        assert [each.node.node_id for each in result] == [uid("zebra")]
        assert result[0].score == 0.0
    assert retriever.retrieve(plain)[0].node.node_id == uid("sky")
    assert (bundle, plain.embedding) == (before, None)


def test_given_embedding_is_not_computed_again(nodes, parts, monkeypatch):
    retriever = MeVeRetriever.from_index(build_index("SimpleVectorStore", nodes), **NARROW, **parts)
    monkeypatch.setattr(MeVeEmbedding, "_get_query_embedding", lambda self, query: 1 / 0)
    assert retriever.retrieve(custom_query("embedding"))


def test_embedding_of_another_dimension_is_ignored(nodes, parts):
    """Retrievers over several indexes share a query, and the stock one writes its embedding into it."""
    retriever = MeVeRetriever.from_nodes(nodes, **NARROW, **parts)
    assert retriever.retrieve(QueryBundle(BLUE, embedding=[1.0, 0.0]))[0].node.node_id == uid("sky")


@pytest.mark.parametrize("use_async", [False, True])
def test_fusion_with_a_stock_retriever_works(use_async, nodes, parts):
    stock = build_index("SimpleVectorStore", nodes).as_retriever(similarity_top_k=1)
    retriever = MeVeRetriever.from_nodes(nodes, **parts)
    fused = QueryFusionRetriever(
        [stock, retriever], llm=MockLLM(), num_queries=1, use_async=use_async, similarity_top_k=2
    )
    assert fused.retrieve(BLUE)[0].node.node_id == uid("sky")


class RecordingStore(SimpleVectorStore):
    embeddings: list = []  # noqa: RUF012 - pydantic's

    def query(self, query, **kwargs):
        self.embeddings.append(query.query_embedding)
        return super().query(query, **kwargs)


def test_later_hop_computes_its_own_embedding(nodes, parts):
    store = RecordingStore(embeddings=[])
    retriever = MeVeRetriever.from_index(build_index(None, nodes, store), hops=2, sources="dense", **parts)
    bundle = QueryBundle(BLUE, embedding=embedding("wide sky"))
    retriever.retrieve(bundle)
    assert len(store.embeddings) > 1
    assert store.embeddings[0] == bundle.embedding
    assert bundle.embedding not in store.embeddings[1:]


def test_fallback_receives_the_unchanged_query_bundle(nodes, parts):
    queries = []

    class Fallback(BaseRetriever):
        def _retrieve(self, query_bundle):
            queries.append(copy.copy(query_bundle))
            query_bundle.embedding = [0.0]  # as the stock retriever does
            return []

    bundle = custom_query("texts")
    postprocessor = MeVePostprocessor.make(fallback=Fallback(), **parts)
    postprocessor.postprocess_nodes([NodeWithScore(node=nodes[2])], query_bundle=bundle)
    assert queries == [custom_query("texts")]
    assert bundle == custom_query("texts")
