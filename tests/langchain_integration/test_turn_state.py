"""Turns that other middleware, failures, or another user come between: whose words are kept, and what is shown."""

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from langchain_meve import MeVeMemoryMiddleware
from tests.langchain_integration.chat_models import Scripted, actions, by_memory, recalled
from tests.langchain_integration.test_memory_middleware import ASKED, DOG, Context, agent, call, config


def test_what_was_said_is_remembered_though_it_was_summed_up_before_the_answer(memory):
    """In a turn of many calls of tools; and what was recalled for it is still shown, and judged."""

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    def answer(messages):
        if not any(m.type == "system" for m in messages):
            return AIMessage("A summary.")
        calls = sum(recalled(seen) == [DOG] for seen in model.seen)
        if calls < 5:
            return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": str(calls)}])
        return by_memory(messages)

    memory.add(DOG, user_id="ann")
    model = Scripted(answer=answer)
    summary = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))
    told = create_agent(
        model, [look], middleware=[summary, MeVeMemoryMiddleware(memory, user_id="ann")], checkpointer=InMemorySaver()
    )
    made = told.invoke({"messages": [("user", f"I like tea. {ASKED}")]}, config("monday"))
    assert [m.text for m in made["messages"] if m.type == "human" and "tea" in m.text] == []
    assert made["messages"][-1].text == DOG
    assert sorted(r.text for r in memory.list(user_id="ann")) == [DOG, "I like tea."]
    assert actions(memory, "ann") == ["add", "retrieve", "use", "add"]
    assert set(made) == {"messages"}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_what_one_user_said_is_never_another_s_who_comes_to_the_thread(memory, way):
    """Also where the first was never answered."""
    replies = iter([RuntimeError("no model"), AIMessage("Noted."), AIMessage("Noted.")])

    def answer(messages):
        if isinstance(reply := next(replies), RuntimeError):
            raise reply
        return reply

    told = agent(memory, Scripted(answer=answer))
    with pytest.raises(RuntimeError, match="no model"):
        call(way, told, "I am ill.", "shared", "ann")
    call(way, told, "I like tea.", "shared", "bob")
    call(way, told, "I like milk.", "shared", "ann")
    assert [r.text for r in memory.list(user_id="bob")] == ["I like tea."]
    assert [r.text for r in memory.list(user_id="ann")] == ["I like milk."]


def test_who_resumes_another_s_turn_gets_none_of_its_words(memory):
    @tool
    def confirm() -> str:
        """Asks."""
        return interrupt("sure?")

    def answer(messages):
        asks = [{"name": "confirm", "args": {}, "id": "1"}]
        return AIMessage("Done.") if messages[-1].type == "tool" else AIMessage("", tool_calls=asks)

    told = agent(memory, Scripted(answer=answer), tools=[confirm])
    told.invoke({"messages": [("user", "I am ill.")]}, config("monday"), context=Context("ann"))
    told.invoke(Command(resume="yes"), config("monday"), context=Context("boss"))
    assert memory.list(user_id="boss") == []


def test_a_turn_that_failed_and_is_asked_otherwise_is_recalled_anew(memory):
    """Under the same id of a message, as where a user edits it."""
    memory.add(DOG, user_id="ann")
    memory.add("My car is a red Volvo.", user_id="ann")
    model = Scripted(answer=lambda messages: by_memory(messages) if len(model.seen) > 1 else 1 / 0)
    told = agent(memory, model)
    given = {"config": config("monday"), "context": Context("ann")}
    with pytest.raises(ZeroDivisionError):
        told.invoke({"messages": [HumanMessage(ASKED, id="h")]}, **given)
    made = told.invoke({"messages": [HumanMessage("What is my car? It is blue now.", id="h")]}, **given)
    assert made["messages"][-1].text == "My car is a red Volvo."
    assert "It is blue now." in {r.text for r in memory.list(user_id="ann")}


def test_what_is_made_private_in_the_middle_of_a_turn_is_not_shown_again(memory):
    fact = memory.add(DOG, user_id="ann")

    @tool
    def hide() -> str:
        """Hides."""
        memory.update(fact.id, user_id="ann", policy_class="private")
        return "done"

    def answer(messages):
        called = any(m.type == "tool" for m in messages)
        return AIMessage("ok") if called else AIMessage("", tool_calls=[{"name": "hide", "args": {}, "id": "1"}])

    model = Scripted(answer=answer)
    call("invoke", agent(memory, model, tools=[hide]), ASKED, "monday", "ann")
    assert [recalled(messages) for messages in model.seen] == [[DOG], []]
