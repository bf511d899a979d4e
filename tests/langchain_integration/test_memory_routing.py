"""Routed memory in LangChain: a runnable, the agent middleware and the tools."""

import asyncio
import json

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import START, MessagesState, StateGraph

from langchain_meve import MeVeMemoryMiddleware, MeVeMemoryRouter, create_memory_tools
from meve.errors import ConfigurationError, ValidationError
from meve.routing import RouterConfig
from tests.langchain_integration.chat_models import Context, ScriptedChatModel, recalled_texts

HIKES = ["I went hiking to the lake.", "I went hiking to the cave.", "I went hiking to the castle."]
QUESTION = "How many times did I go hiking?"
ALICE = {"configurable": {"user_id": "alice"}}


@pytest.fixture
def filled(memory):
    for text in (*HIKES, "I live in Oslo.", "I own a red bike."):
        memory.add(text, user_id="alice", source="chat_user")
    memory.add("I went hiking with a secret friend.", user_id="bob", source="chat_user")
    return memory


def say(text):
    return ScriptedChatModel(answer=lambda _: AIMessage(text))


PROMPT = ChatPromptTemplate.from_messages([("system", "Be kind."), ("user", "{question}")])


@pytest.mark.parametrize(
    "given",
    [QUESTION, HumanMessage(QUESTION), ["x", AIMessage("y"), HumanMessage(QUESTION)], [("user", QUESTION)],
     [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "?"}],
     PROMPT.invoke({"question": QUESTION}), (AIMessage("y"), HumanMessage(QUESTION)), ["And bikes?", QUESTION]],
)  # fmt: skip
def test_runnable_answers_with_tier_and_verdicts(filled, given):
    answer = MeVeMemoryRouter(filled, say("3")).invoke(given, ALICE)
    assert answer.text == "3"
    told = answer.response_metadata
    assert (told["tier"], told["abstained"], told["escalations"]) == ("deep", False, 0)
    assert told["verdicts"][0]["check"] == "short"
    assert len(told["memories"]) >= 3
    json.dumps(told)


def make_graph(router):
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("answer", router)
    graph.add_edge(START, "answer")
    return graph.compile()


def test_runnable_is_a_node_of_a_graph(filled):
    graph = make_graph(MeVeMemoryRouter(filled, say("3")))
    state = {"messages": [("user", QUESTION)]}
    for after in (
        graph.invoke(state, context=Context("alice")),
        graph.invoke(state, ALICE),
        asyncio.run(graph.ainvoke(state, context=Context("alice"))),
    ):
        assert [message.text for message in after["messages"]] == [QUESTION, "3"]
        assert after["messages"][-1].response_metadata["tier"] == "deep"


@pytest.mark.parametrize(("reply", "told"), [("Three times", "Three times"), ("In Timbuktu, of course", "No idea.")])
def test_graph_streams_only_answers_that_passed(filled, reply, told):
    router = MeVeMemoryRouter(filled, say(reply), user_id="alice", routing=RouterConfig(abstention="No idea."))
    state, graph = {"messages": [("user", QUESTION)]}, make_graph(router)
    assert [piece.text for piece, _ in graph.stream(state, stream_mode="messages")] == [told]

    async def stream():
        return [piece.text async for piece, _ in graph.astream(state, stream_mode="messages")]

    assert asyncio.run(stream()) == [told]


def test_follow_up_is_joined_with_the_question_before_it(filled):
    filled.add("My sister works as a nurse.", user_id="alice", source="chat_user")
    model = say("Nurse")
    before = [("user", "Where do I live?"), ("assistant", "In Oslo."), ("user", "What does my sister do?")]
    MeVeMemoryRouter(filled, model, user_id="alice").invoke([*before, ("user", "And since when?")])
    assert "Question: What does my sister do? And since when?" in model.seen[0][0].text
    assert "Where do I live" not in model.seen[0][0].text


def test_runnable_reads_the_memory_of_the_calls_user(filled):
    router = MeVeMemoryRouter(filled, say("1"))
    texts = {
        user: router.answer(QUESTION, {"configurable": {"user_id": user}}).evidence.text for user in ("alice", "bob")
    }
    assert "secret" not in texts["alice"]
    assert "lake" not in texts["bob"]


def test_runnable_is_part_of_a_chain_and_async(filled):
    chain = MeVeMemoryRouter(filled, say("3"), user_id="alice") | (lambda message: message.text)
    assert chain.invoke(QUESTION) == "3"
    assert asyncio.run(chain.ainvoke(QUESTION)) == "3"
    assert chain.batch([QUESTION, QUESTION]) == ["3", "3"]


def test_runnable_without_user_or_question_fails(filled):
    with pytest.raises(ValidationError, match="user_id is missing"):
        MeVeMemoryRouter(filled, say("3")).invoke(QUESTION)
    with pytest.raises(ValidationError, match="input must be a question"):
        MeVeMemoryRouter(filled, say("3"), user_id="alice").invoke({"q": QUESTION})
    blank = [{"messages": []}, {"messages": None}, [], [AIMessage("Hello")], None, 5, [5]]
    for given in (*blank, [{"q": QUESTION}], [{"role": "stranger", "content": "x"}]):
        with pytest.raises(ValidationError, match="input must be a question"):
            MeVeMemoryRouter(filled, say("3"), user_id="alice").invoke(given)


def test_middleware_reads_by_tier(filled):
    model = say("Three times.")
    agent = create_agent(
        model, [], middleware=[MeVeMemoryMiddleware(filled, routing=RouterConfig())], context_schema=Context
    )
    agent.invoke({"messages": [("user", QUESTION)]}, context=Context("alice"))
    assert [text for text in recalled_texts(model.seen[-1]) if text in HIKES] == HIKES
    agent.invoke({"messages": [("user", "Hi there!")]}, context=Context("alice"))
    assert recalled_texts(model.seen[-1]) == []


async def test_middleware_reads_by_tier_in_async_and_streaming_agents(filled):
    model = say("Three times.")
    agent = create_agent(model, [], middleware=[MeVeMemoryMiddleware(filled, routing=RouterConfig())])
    state = {"messages": [("user", QUESTION)]}
    await agent.ainvoke(state, ALICE)
    assert "".join(piece.text for piece, _ in agent.stream(state, ALICE, stream_mode="messages")) == "Three times."
    streamed = [piece.text async for piece, _ in agent.astream(state, ALICE, stream_mode="messages")]
    assert "".join(streamed) == "Three times."
    assert len(model.seen) == 3
    for seen in model.seen:
        assert [text for text in recalled_texts(seen) if text in HIKES] == HIKES


def test_middleware_leaves_out_what_the_conversation_shows(filled):
    model = say("Twice more.")
    agent = create_agent(model, [], middleware=[MeVeMemoryMiddleware(filled, user_id="alice", routing=RouterConfig())])
    agent.invoke({"messages": [("user", HIKES[0]), ("assistant", "Nice."), ("user", QUESTION)]})
    assert [text for text in recalled_texts(model.seen[-1]) if text in HIKES] == HIKES[1:]


def test_recall_tool_reads_by_tier(filled):
    (tool,) = create_memory_tools(filled, "alice", names=["recall"], routing=RouterConfig())
    message = tool.invoke({"type": "tool_call", "name": "recall", "args": {"query": QUESTION}, "id": "1"})
    assert message.artifact["trace"]["mode"] == "deep"
    assert all(text in message.text for text in HIKES)
    assert "secret" not in message.text


async def test_agent_calls_the_routed_recall_tool(filled):
    def act(messages):
        if messages[-1].type == "tool":
            return AIMessage(f"I read: {messages[-1].text}")
        return AIMessage("", tool_calls=[{"name": "recall", "args": {"query": QUESTION}, "id": "1"}])

    tools = create_memory_tools(filled, names=["recall"], routing=RouterConfig())
    agent = create_agent(ScriptedChatModel(answer=act), tools)
    state = {"messages": [("user", QUESTION)]}
    for after in (agent.invoke(state, ALICE), await agent.ainvoke(state, ALICE)):
        *_, result, answer = after["messages"]
        assert result.artifact["trace"]["mode"] == "deep"
        assert all(hike in answer.text for hike in HIKES)
        assert "secret" not in answer.text


@pytest.mark.parametrize("options", [{"routing": {}}, {"routing": RouterConfig(), "search": {"max_tokens": 5}}])
def test_invalid_routing_is_refused(memory, options):
    for make in (MeVeMemoryMiddleware, create_memory_tools):
        with pytest.raises(ConfigurationError, match=r"routing must be|set by the router"):
            make(memory, user_id="alice", **options)
