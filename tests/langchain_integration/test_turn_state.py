"""Turns that other middleware, failures or another user interrupt: whose messages are recorded and what is shown."""

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from langchain_meve import MeVeMemoryMiddleware
from tests.langchain_integration.chat_models import ScriptedChatModel, answer_from_memory, audit_actions, recalled_texts
from tests.langchain_integration.test_memory_middleware import (
    FACT,
    QUESTION,
    Context,
    call_agent,
    config,
    make_agent,
)


def test_message_summarized_before_answer_is_recorded(memory):
    """Many tool calls follow the question; the recalled memory stays visible and is scored."""

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

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
    agent = create_agent(
        model, [look], middleware=[summary, MeVeMemoryMiddleware(memory, user_id="ann")], checkpointer=InMemorySaver()
    )
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


def test_user_who_resumes_turn_records_nothing_of_it(memory):
    @tool
    def confirm() -> str:
        """Asks."""
        return interrupt("sure?")

    def answer(messages):
        asks = [{"name": "confirm", "args": {}, "id": "1"}]
        return AIMessage("Done.") if messages[-1].type == "tool" else AIMessage("", tool_calls=asks)

    agent = make_agent(memory, ScriptedChatModel(answer=answer), tools=[confirm])
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
    result = agent.invoke({"messages": [HumanMessage("What is my car? It is blue now.", id="h")]}, **options)
    assert result["messages"][-1].text == "My car is a red Volvo."
    assert "It is blue now." in {r.text for r in memory.list(user_id="ann")}


def test_memory_made_private_during_turn_is_not_shown_again(memory):
    fact = memory.add(FACT, user_id="ann")

    @tool
    def hide() -> str:
        """Hides."""
        memory.update(fact.id, user_id="ann", policy_class="private")
        return "done"

    def answer(messages):
        called = any(m.type == "tool" for m in messages)
        return AIMessage("ok") if called else AIMessage("", tool_calls=[{"name": "hide", "args": {}, "id": "1"}])

    model = ScriptedChatModel(answer=answer)
    call_agent("invoke", make_agent(memory, model, tools=[hide]), QUESTION, "monday", "ann")
    assert [recalled_texts(messages) for messages in model.seen] == [[FACT], []]
