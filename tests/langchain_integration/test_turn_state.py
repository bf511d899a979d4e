"""Turns that other middleware, failures or another user interrupt: whose messages are recorded and what is shown."""

import pytest

pytest.importorskip("langchain")

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command

from meve.memory.turns import TurnRules
from tests.langchain_integration.chat_models import (
    FACT,
    QUESTION,
    Context,
    ScriptedChatModel,
    answer_from_memory,
    audit_actions,
    recalled_texts,
)
from tests.langchain_integration.test_memory_middleware import call_agent, call_once, config, confirm, look, make_agent


def test_message_summarized_before_answer_is_recorded(memory):
    """Many tool calls follow the question; the recalled memory stays visible and is scored."""

    def answer(messages):
        if not any(m.type == "system" for m in messages):
            return AIMessage("A summary.")
        calls = sum(recalled_texts(seen) == [FACT] for seen in model.seen)
        if calls < 5:
            return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": str(calls)}])
        return answer_from_memory(messages)

    memory.add(FACT, user_id="ann")
    model = ScriptedChatModel(answer=answer)
    summary = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))
    agent = make_agent(memory, model, tools=[look], before=[summary], user_id="ann")
    result = agent.invoke({"messages": [("user", f"I like tea. {QUESTION}")]}, config("monday"))
    assert [m.text for m in result["messages"] if m.type == "human" and "tea" in m.text] == []
    assert result["messages"][-1].text == FACT
    assert sorted(r.text for r in memory.list(user_id="ann")) == [FACT, "I like tea."]
    assert audit_actions(memory, "ann") == ["add", "retrieve", "use", "add"]
    assert set(result) == {"messages"}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_unanswered_message_is_never_recorded_for_next_user_of_thread(memory, way):
    replies = iter([RuntimeError("no model"), AIMessage("Noted."), AIMessage("Noted.")])

    def answer(messages):
        if isinstance(reply := next(replies), RuntimeError):
            raise reply
        return reply

    agent = make_agent(memory, ScriptedChatModel(answer=answer))
    with pytest.raises(RuntimeError, match="no model"):
        call_agent(way, agent, "I am ill.", "shared", "ann")
    call_agent(way, agent, "I like tea.", "shared", "bob")
    call_agent(way, agent, "I like milk.", "shared", "ann")
    assert [r.text for r in memory.list(user_id="bob")] == ["I like tea."]
    assert [r.text for r in memory.list(user_id="ann")] == ["I like milk."]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_tool_result_that_ends_a_turn_is_never_recorded_for_next_user_of_thread(memory, way):
    @tool(return_direct=True)
    def look_up() -> str:
        """Looks up."""
        return "The patient has diabetes."

    def answer(messages):
        call = {"name": "look_up", "args": {}, "id": str(len(messages))}
        return AIMessage("Noted.") if "tea" in messages[-1].text else AIMessage("", tool_calls=[call])

    rules = TurnRules(sources={"user": "chat_user", "tool": "api_result"})
    agent = make_agent(memory, ScriptedChatModel(answer=answer), tools=[look_up], remember=rules)
    call_agent(way, agent, "What do I have?", "shared", "ann")
    call_agent(way, agent, "I like tea.", "shared", "bob")
    assert [r.text for r in memory.list(user_id="bob")] == ["I like tea."]
    assert [r.text for r in memory.list(user_id="ann")] == ["The patient has diabetes."]


def test_user_who_resumes_turn_records_nothing_of_it(memory):
    agent = make_agent(memory, call_once("confirm"), tools=[confirm])
    agent.invoke({"messages": [("user", "I am ill.")]}, config("monday"), context=Context("ann"))
    agent.invoke(Command(resume="yes"), config("monday"), context=Context("boss"))
    assert memory.list(user_id="boss") == []


def test_edited_message_of_failed_turn_is_recalled_again(memory):
    """The edited message keeps its id."""
    memory.add(FACT, user_id="ann")
    memory.add("My car is a red Volvo.", user_id="ann")
    model = ScriptedChatModel(answer=lambda messages: answer_from_memory(messages) if len(model.seen) > 1 else 1 / 0)
    agent = make_agent(memory, model)
    options = {"config": config("monday"), "context": Context("ann")}
    with pytest.raises(ZeroDivisionError):
        agent.invoke({"messages": [HumanMessage(QUESTION, id="h")]}, **options)
    result = agent.invoke({"messages": [HumanMessage("What is my car? We painted it blue.", id="h")]}, **options)
    assert result["messages"][-1].text.startswith("My car is a red Volvo.")
    assert "We painted it blue." in {r.text for r in memory.list(user_id="ann")}
