"""A question as LlamaIndex puts it: with an embedding that is known, or other texts to embed; it stays as it is."""

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
from tests.llama_index_integration.stores import STORES, indexed

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Payload indexes have no effect")

BLUE = "blue sky"
NARROW = {"sources": "dense", "candidates": 1, "threshold": 0.0, "fallback_k": 0}
"""One candidate, the nearest; whatever its score, it comes back."""


def embedding(text):
    return WordEmbedder().embed_query(text).tolist()


def put(way):
    """A question about one thing, to be embedded as another."""
    if way == "embedding":
        return QueryBundle(BLUE, embedding=embedding("zebra facts for you"))
    return QueryBundle(BLUE, custom_embedding_strs=["zebra facts", "for you zebra"])


@pytest.fixture(params=["nodes", *STORES])
def retriever(request, nodes, parts):
    if request.param == "nodes":
        return MeVeRetriever.from_nodes(nodes, **NARROW, **parts)
    return MeVeRetriever.from_index(indexed(request.param, nodes), **NARROW, **parts)


@pytest.mark.parametrize("way", ["embedding", "texts"])
def test_a_question_is_looked_for_as_it_was_put_and_verified_by_its_words(way, retriever):
    bundle = put(way)
    before = copy.deepcopy(bundle)
    for found in (retriever.retrieve(bundle), asyncio.run(retriever.aretrieve(bundle))):
        assert [each.node.node_id for each in found] == [uid("zebra")]
        assert found[0].score == 0.0
    assert retriever.retrieve(BLUE)[0].node.node_id == uid("sky")
    assert bundle == before


def test_an_embedding_that_is_known_is_not_made_again(nodes, parts, monkeypatch):
    retriever = MeVeRetriever.from_index(indexed("SimpleVectorStore", nodes), **NARROW, **parts)
    monkeypatch.setattr(MeVeEmbedding, "_get_query_embedding", lambda self, query: 1 / 0)
    assert retriever.retrieve(put("embedding"))


def test_an_embedding_of_another_dimension_is_not_taken_for_ones_own(nodes, parts):
    """As when retrievers over several indexes share a question, and the stock one wrote its embedding there."""
    retriever = MeVeRetriever.from_nodes(nodes, **NARROW, **parts)
    assert retriever.retrieve(QueryBundle(BLUE, embedding=[1.0, 0.0]))[0].node.node_id == uid("sky")


@pytest.mark.parametrize("use_async", [False, True])
def test_it_shares_a_question_with_a_stock_retriever(use_async, nodes, parts):
    stock = indexed("SimpleVectorStore", nodes).as_retriever(similarity_top_k=1)
    mine = MeVeRetriever.from_nodes(nodes, **parts)
    fused = QueryFusionRetriever([stock, mine], llm=MockLLM(), num_queries=1, use_async=use_async, similarity_top_k=2)
    assert fused.retrieve(BLUE)[0].node.node_id == uid("sky")


class Asked(SimpleVectorStore):
    embeddings: list = []  # noqa: RUF012 - pydantic's

    def query(self, query, **kwargs):
        self.embeddings.append(query.query_embedding)
        return super().query(query, **kwargs)


def test_what_a_later_hop_asks_is_another_question(nodes, parts):
    store = Asked(embeddings=[])
    retriever = MeVeRetriever.from_index(indexed(None, nodes, store), hops=2, sources="dense", **parts)
    bundle = QueryBundle(BLUE, embedding=embedding("wide sky"))
    retriever.retrieve(bundle)
    assert len(store.embeddings) > 1
    assert store.embeddings[0] == bundle.embedding
    assert bundle.embedding not in store.embeddings[1:]


def test_a_fallback_is_asked_with_the_question_as_it_was_put(nodes, parts):
    heard = []

    class Fallback(BaseRetriever):
        def _retrieve(self, query_bundle):
            heard.append(copy.copy(query_bundle))
            query_bundle.embedding = [0.0]  # as the stock one does
            return []

    bundle = put("texts")
    made = MeVePostprocessor.make(fallback=Fallback(), **parts)
    made.postprocess_nodes([NodeWithScore(node=nodes[2])], query_bundle=bundle)
    assert heard == [put("texts")]
    assert bundle == put("texts")
