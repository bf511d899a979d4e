"""Routed memory in LlamaIndex: a query engine, the memory block and the tools."""

import pytest
from llama_index.core import Settings
from llama_index.core.agent.workflow import AgentStream
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from llama_index.core.tools import QueryEngineTool

from llama_index_meve import MeVeMemoryBlock, MeVeMemoryQueryEngine, create_memory_tools
from meve.errors import ConfigurationError
from meve.routing import RouterConfig
from meve.testing.fakes import WordCounter
from tests.llama_index_integration.chat_helpers import ScriptedLLM, function_agent, run_agent, tool_call, user

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's agents
HIKES = ["I went hiking to the lake.", "I went hiking to the cave.", "I went hiking to the castle."]
QUESTION = "How many times did I go hiking?"


@pytest.fixture
def filled(memory):
    for text in (*HIKES, "I live in Oslo.", "I own a red bike."):
        memory.add(text, user_id="alice", source="chat_user")
    memory.add("I went hiking with a secret friend.", user_id="bob", source="chat_user")
    return memory


def make_engine(memory, answer, **options):
    return MeVeMemoryQueryEngine(memory, user_id="alice", llm=lambda _: answer, **options)


def test_engine_answers_with_its_memories(filled):
    response = make_engine(filled, "3").query(QUESTION)
    assert str(response) == "3"
    assert (response.metadata["tier"], response.metadata["abstained"]) == ("deep", False)
    assert [node.text for node in response.source_nodes if node.text in HIKES] == HIKES
    assert not any("secret" in node.text for node in response.source_nodes)


def test_blank_llm_is_refused_instead_of_replaced(memory, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    with pytest.raises(ConfigurationError, match="llm must not be blank"):
        MeVeMemoryQueryEngine(memory, user_id="alice", llm="")


def test_engine_abstains(filled):
    response = make_engine(filled, "I don't know.", routing=RouterConfig(abstention="No idea.")).query(QUESTION)
    assert (str(response), response.metadata["abstained"]) == ("No idea.", True)


async def test_engine_is_async_and_a_tool(filled):
    tool = QueryEngineTool.from_defaults(make_engine(filled, "3"), name="memory", description="Knows the user.")
    assert str(await tool.acall(QUESTION)) == "3"


def test_engine_uses_the_own_llm_of_llama_index(filled, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", MockLLM(max_tokens=1))
    assert MeVeMemoryQueryEngine(filled, user_id="alice").query(QUESTION).metadata["verdicts"]


async def test_agent_calls_the_engine_and_the_routed_tool(filled):
    (recall,) = create_memory_tools(filled, "alice", names=["recall"], routing=RouterConfig())
    engine = QueryEngineTool.from_defaults(make_engine(filled, "3"), name="memory", description="Knows the user.")
    calls = [tool_call("recall", "1", query=QUESTION), tool_call("memory", "2", input=QUESTION)]
    llm = ScriptedLLM(reply=lambda _: calls.pop(0) if calls else "Three times.")
    assert str(await function_agent(llm, [recall, engine]).run(QUESTION)) == "Three times."
    read = llm.prompt_text()
    assert all(hike in read for hike in HIKES)
    assert [str(message.content) for message in llm.prompts[-1]][-1] == "3"
    assert "secret" not in read


async def test_agent_reads_the_routed_block_each_turn(filled):
    block = MeVeMemoryBlock(filled, user_id="alice", tokens=WordCounter(), routing=RouterConfig())
    memory = Memory.from_defaults(session_id="s", memory_blocks=[block])
    llm = ScriptedLLM(reply=lambda _: "Three times.")
    handler = function_agent(llm).run(QUESTION, memory=memory)
    streamed = [event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)]
    assert (str(await handler), "".join(streamed)) == ("Three times.", "Three times.")
    assert all(hike in llm.prompt_text() for hike in HIKES)
    await run_agent(function_agent(llm), memory, "Hi there!")
    assert "castle" not in llm.prompt_text()
    await memory.sql_store._async_engine.dispose()


async def test_block_reads_by_tier(filled):
    block = MeVeMemoryBlock(filled, user_id="alice", tokens=WordCounter(), routing=RouterConfig())
    text = await block.aget([user(QUESTION)], session_id="s")
    places = [text.index(hike) for hike in HIKES]
    assert places == sorted(places)
    assert "secret" not in text
    assert await block.aget([user("Hi there!")], session_id="s") == ""


async def test_block_keeps_its_token_limit(filled):
    for limit in (20, 60):
        block = MeVeMemoryBlock(filled, user_id="alice", tokens=WordCounter(), max_tokens=limit, routing=RouterConfig())
        assert len((await block.aget([user(QUESTION)], session_id="s")).split()) <= limit


def test_recall_tool_reads_by_tier(filled):
    (tool,) = create_memory_tools(filled, "alice", names=["recall"], routing=RouterConfig())
    text = str(tool.call(query=QUESTION))
    assert all(hike in text for hike in HIKES)
    assert "secret" not in text


@pytest.mark.parametrize("options", [{"routing": {}}, {"routing": RouterConfig(), "search": {"max_tokens": 5}}])
def test_invalid_routing_is_refused(memory, options):
    for make in (MeVeMemoryBlock, create_memory_tools):
        with pytest.raises(ConfigurationError, match=r"routing must be|set by the router"):
            make(memory, user_id="alice", **options)
