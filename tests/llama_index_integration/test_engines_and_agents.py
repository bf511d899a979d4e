"""Postprocessor, retriever and tool inside query engines, chat engines and agents."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_meve import MeVeEmbedding, MeVePostprocessor, MeVeRetriever, create_meve_query_engine, create_meve_tool
from llama_index_meve.query_engine import DEFAULT_EMPTY_RESPONSE
from meve.errors import ConfigurationError, InsufficientContextError
from meve.integrations._tool_texts import NO_RESULT_MESSAGE
from meve.testing.fakes import WordEmbedder
from tests.llama_index_integration.chat_helpers import ScriptedLLM, function_agent, tool_call
from tests.llama_index_integration.conftest import Listener, RecordingRetriever, listening, uid

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


def test_query_engine_with_the_postprocessor(index, postprocessor):
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=4, node_postprocessors=[postprocessor])
    for answer in (engine.query(BLUE), asyncio.run(engine.aquery(BLUE))):
        assert "A blue sky today." in str(answer)
        assert "Zebra" not in str(answer)
        assert answer.source_nodes[0].score == 1.0


def test_retriever_query_engine(retriever):
    answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(BLUE)
    assert "A blue sky today." in str(answer)


def test_answers_are_streamed(index, postprocessor, retriever):
    verified = index.as_query_engine(
        llm=MockLLM(), similarity_top_k=4, node_postprocessors=[postprocessor], streaming=True
    )
    for engine in (verified, create_meve_query_engine(retriever, llm=MockLLM(), streaming=True)):
        answer = engine.query(BLUE)
        assert "A blue sky today." in "".join(answer.response_gen)
        assert answer.source_nodes[0].score == 1.0


def test_nodes_pass_through_later_postprocessors(retriever):
    engine = create_meve_query_engine(
        retriever, llm=MockLLM(), node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=1.0)]
    )
    assert [each.node.node_id for each in engine.query(BLUE).source_nodes] == [uid("sky")]


@pytest.fixture(params=["default memory", "buffer"])
async def memory(request):
    """The default of chat engines, whose database the fixture closes, and the default of agents."""
    if request.param == "buffer":
        yield ChatMemoryBuffer.from_defaults()
        return
    created = Memory.from_defaults()
    yield created
    await created.sql_store._async_engine.dispose()


@pytest.mark.parametrize("engine", [ContextChatEngine, CondensePlusContextChatEngine])
@pytest.mark.parametrize("through", ["retriever", "postprocessor"])
async def test_chat_engines_sync_async_and_streaming(engine, through, index, retriever, postprocessor, memory):
    if through == "retriever":
        chat = engine.from_defaults(retriever=retriever, llm=MockLLM(), memory=memory)
    else:
        stock = index.as_retriever(similarity_top_k=4)
        chat = engine.from_defaults(retriever=stock, llm=MockLLM(), memory=memory, node_postprocessors=[postprocessor])
    ways = [chat.achat, chat.astream_chat]
    if isinstance(memory, ChatMemoryBuffer):  # sync methods of Memory run their own loop
        ways += [chat.chat, chat.stream_chat]
    for way in ways:
        answer = await way(BLUE) if way in ways[:2] else way(BLUE)
        if way == chat.astream_chat:
            assert [token async for token in answer.async_response_gen()]
        elif way == chat.stream_chat:
            assert list(answer.response_gen)
        assert any(each.node.text == "A blue sky today." for each in answer.source_nodes)
        assert not any("Zebra" in each.node.text for each in answer.source_nodes)
        roles = [message.role for message in await memory.aget_all()]
        assert roles == [MessageRole.USER, MessageRole.ASSISTANT]
        await memory.areset()


@pytest.mark.parametrize("way", ["return", "verified_only"])
@pytest.mark.parametrize("through", ["retriever", "postprocessor"])
def test_empty_responses_stay_out_of_chat_memory_unless_unverified_nodes_are_left_out(
    through, way, nodes, parts, index
):
    memory = ChatMemoryBuffer.from_defaults()
    if through == "retriever":
        retriever = MeVeRetriever.from_nodes(nodes, when_insufficient=way, **parts)
        chat = ContextChatEngine.from_defaults(retriever=retriever, llm=MockLLM(), memory=memory)
    else:
        stock = index.as_retriever(similarity_top_k=4)
        last = MeVePostprocessor.make(when_insufficient=way, **parts)
        chat = ContextChatEngine.from_defaults(
            retriever=stock, llm=MockLLM(), memory=memory, node_postprocessors=[last]
        )
    chat.chat("zebra, quantum chromodynamics, and other things")
    answers = [message.content for message in memory.get_all()]
    assert ("Empty Response" in answers) is (way == "verified_only")


def test_query_engine_lets_the_model_decide_unless_told_otherwise(nodes, parts):
    far = "zebra, quantum chromodynamics, and other things"
    retriever = MeVeRetriever.from_nodes(nodes, **parts)
    assert retriever.retrieve(far)
    prompt = str(create_meve_query_engine(retriever, llm=MockLLM()).query(far))
    assert "Zebra" in prompt
    assert "If they don't hold the answer, say" in prompt
    own = create_meve_query_engine(
        retriever, llm=MockLLM(), text_qa_template=PromptTemplate("{context_str}|{query_str}")
    )
    assert str(own.query(far)).endswith(f"|{far}")
    strict = create_meve_query_engine(retriever, llm=MockLLM(), when_insufficient="verified_only")
    assert str(strict.query(far)) == DEFAULT_EMPTY_RESPONSE
    with pytest.raises(ConfigurationError, match="must be a MeVeRetriever"):
        create_meve_query_engine(RecordingRetriever(nodes), llm=MockLLM())


@pytest.mark.parametrize("way", ["verified_only", "abstain", "raise"])
def test_engine_and_tool_keep_a_stricter_setting_of_the_retriever(nodes, parts, way):
    far = "zebra, quantum chromodynamics, and other things"
    strict = MeVeRetriever.from_nodes(nodes, when_insufficient=way, **parts)
    assert create_meve_tool(strict)(far).content == NO_RESULT_MESSAGE
    engine = create_meve_query_engine(strict, llm=MockLLM())
    if way == "raise":
        with pytest.raises(InsufficientContextError):
            engine.query(far)
    else:
        assert str(engine.query(far)) == DEFAULT_EMPTY_RESPONSE


def test_query_engine_returns_its_empty_response_if_nothing_qualifies(nodes, parts):
    strict = {**parts, "config": parts["config"].override(fallback_floor=1.0)}
    engine = create_meve_query_engine(
        MeVeRetriever.from_nodes(nodes, **strict), llm=MockLLM(), empty_response="I don't know."
    )
    assert str(engine.query("quantum chromodynamics")) == "I don't know."
    assert "A blue sky today." in str(engine.query(BLUE))


async def test_agent_answers_with_the_tool(retriever):
    def reply(messages):
        results = [m.content for m in messages if m.role == MessageRole.TOOL]
        return f"told: {results[-1]}" if results else tool_call("search_documents", query=BLUE)

    agent = function_agent(ScriptedLLM(reply=reply), [create_meve_tool(retriever)])
    assert "A blue sky today." in str(await agent.run("what colour is the sky?"))


def test_tool_reports_problems_and_emits_retrieval_events(retriever):
    tool, listener = create_meve_tool(retriever), Listener(received=[])
    with listening(listener):
        assert tool(query="quantum chromodynamics").content.startswith("No retrieved passage answers this question.")
        assert tool(query=" ").content.startswith("The question can't be used")
        assert "A blue sky today." in tool(query=BLUE).content
    kinds = [type(event) for event in listener.received]
    assert kinds.count(RetrievalStartEvent) == kinds.count(RetrievalEndEvent) == 3
    ends = [event for event in listener.received if isinstance(event, RetrievalEndEvent)]
    assert [len(event.nodes) > 0 for event in ends] == [False, False, True]
    with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
        create_meve_tool(retriever, thresold=0.5)
