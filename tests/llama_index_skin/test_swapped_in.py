"""In the places where people have a postprocessor or a retriever today."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_meve import MeVeEmbedding, MeVePostprocessor, MeVeRetriever, create_meve_tool, meve_query_engine
from meve.testing.fakes import WordEmbedder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BLUE = "blue sky"


@pytest.fixture
def index(nodes):
    return VectorStoreIndex(nodes, embed_model=MeVeEmbedding(WordEmbedder()))


@pytest.fixture
def retriever(nodes, parts):
    return MeVeRetriever.from_nodes(nodes, **parts)


@pytest.fixture
def postprocessor(parts):
    return MeVePostprocessor.make(**parts)


def test_a_query_engine_with_one_postprocessor_more(index, postprocessor):
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=4, node_postprocessors=[postprocessor])
    for answer in (engine.query(BLUE), asyncio.run(engine.aquery(BLUE))):
        assert "A blue sky today." in str(answer)
        assert "Zebra" not in str(answer)
        assert answer.source_nodes[0].score == 1.0


def test_a_retriever_query_engine(retriever):
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(BLUE)
    assert "A blue sky today." in str(answer)


@pytest.mark.parametrize("engine", [ContextChatEngine, CondensePlusContextChatEngine])
@pytest.mark.parametrize("through", ["retriever", "postprocessor"])
def test_chat_engines(engine, through, index, retriever, postprocessor):
    memory = ChatMemoryBuffer.from_defaults()  # the default one leaves its database open
    if through == "retriever":
        chat = engine.from_defaults(retriever=retriever, llm=MockLLM(), memory=memory)
    else:
        stock = index.as_retriever(similarity_top_k=4)
        chat = engine.from_defaults(retriever=stock, llm=MockLLM(), memory=memory, node_postprocessors=[postprocessor])
    answer = chat.chat(BLUE)
    assert any(each.node.text == "A blue sky today." for each in answer.source_nodes)
    assert not any("Zebra" in each.node.text for each in answer.source_nodes)
    chat.reset()
    assert asyncio.run(chat.achat(BLUE)).source_nodes


def test_where_nothing_qualifies_the_engine_says_so_in_its_own_words(nodes, parts):
    """And asks no model; else it would say 'Empty Response'."""
    strict = {**parts, "config": parts["config"].override(fallback_floor=1.0)}
    engine = meve_query_engine(MeVeRetriever.from_nodes(nodes, **strict), llm=MockLLM(), empty_response="I don't know.")
    assert str(engine.query("quantum chromodynamics")) == "I don't know."
    assert "A blue sky today." in str(engine.query(BLUE))


class Calls(MockLLM):
    """Calls the tool once, then answers with what it was told."""

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        from llama_index.core.base.llms.types import ChatResponse

        told = [m for m in chat_history if m.role == MessageRole.TOOL]
        if told:
            message = ChatMessage(role="assistant", content=f"told: {told[-1].content}")
        else:
            call = ToolCallBlock(tool_call_id="1", tool_name=tools[0].metadata.name, tool_kwargs={"query": BLUE})
            message = ChatMessage(role="assistant", blocks=[call])

        async def stream():
            yield ChatResponse(message=message, delta=message.content or "")

        return stream()

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        from llama_index.core.llms.llm import ToolSelection

        return [
            ToolSelection(tool_id=b.tool_call_id or "1", tool_name=b.tool_name, tool_kwargs=b.tool_kwargs)
            for b in response.message.blocks
            if isinstance(b, ToolCallBlock)
        ]

    @property
    def metadata(self):
        made = super().metadata
        made.is_function_calling_model = True
        return made


def test_an_agent_with_the_tool(retriever):
    from llama_index.core.llms.function_calling import FunctionCallingLLM

    class Model(Calls, FunctionCallingLLM):
        def _prepare_chat_with_tools(self, *args, **kwargs):
            return {}

    agent = FunctionAgent(tools=[create_meve_tool(retriever)], llm=Model(), streaming=True)

    async def run():
        return await agent.run("what colour is the sky?")

    assert "A blue sky today." in str(asyncio.run(run()))
    assert create_meve_tool(retriever)(query="quantum chromodynamics").content == "Nothing that was found answers this."
