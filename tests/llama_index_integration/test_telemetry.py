"""OpenTelemetry in LlamaIndex runs: MeVe's spans stand below those of the application, and hold no content."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_meve import MeVeEmbedding, MeVeMemory, MeVePostprocessor, MeVeRetriever
from meve.testing.fakes import WordEmbedder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_retrieval_of_a_query_engine_is_below_the_span_of_its_caller(recorded, nodes, parts, way):
    engine = RetrieverQueryEngine.from_args(MeVeRetriever.from_nodes(nodes, **parts), llm=MockLLM())
    with recorded.tracer.start_as_current_span("request"):
        answer = engine.query("blue sky") if way == "query" else asyncio.run(engine.aquery("blue sky"))
    assert "A blue sky today." in str(answer)
    assert recorded.parents("retrieval") == [["request"]]
    assert recorded.parents("meve.verify") == [["retrieval", "request"]]
    assert recorded.points("meve.retrievals") == {(("meve.sufficient", True),): 1}
    assert "blue" not in recorded.everything().lower()


def test_postprocessor_is_below_the_span_of_its_caller(recorded, nodes, parts):
    index = VectorStoreIndex(nodes, embed_model=MeVeEmbedding(WordEmbedder()))
    engine = index.as_query_engine(llm=MockLLM(), node_postprocessors=[MeVePostprocessor.make(**parts)])
    with recorded.tracer.start_as_current_span("request"):
        engine.query("blue sky")
    assert recorded.parents("retrieval") == [["request"]]


@pytest.mark.parametrize("way", ["chat", "achat"])
def test_memory_of_a_chat_engine_is_below_the_span_of_its_caller(recorded, memory, way):
    engine = SimpleChatEngine.from_defaults(
        llm=MockLLM(), memory=MeVeMemory(memory, user_id="secretuser", session_id="s1")
    )
    for text in ("I like Zyxomma dragonflies.", "What do I like?"):
        with recorded.tracer.start_as_current_span("request"):
            _ = engine.chat(text) if way == "chat" else asyncio.run(engine.achat(text))
    assert recorded.parents("create_memory")
    around = recorded.parents("search_memory") + recorded.parents("create_memory")
    assert {names[-1] for names in around} == {"request"}
    told = recorded.everything()
    assert "Zyxomma" not in told
    assert "secretuser" not in told
