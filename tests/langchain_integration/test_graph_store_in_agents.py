"""MeVeStore under `create_agent`: tools store and find facts through `runtime.store`."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessage

from langchain_meve import MeVeStore
from tests.langchain_integration.chat_models import ScriptedChatModel

ARGUMENTS = {"manage_memory": "content", "search_memory": "query"}
"""The argument of langmem's tools; that of the others is `text`."""


@dataclass
class User:
    user_id: str


def call_named_tool(messages):
    """Call the tool that the user names, `remember: …` or `recall: …`, and repeat its result."""
    last = messages[-1]
    if last.type == "tool":
        return AIMessage(last.content)
    name, _, text = last.content.partition(": ")
    return AIMessage("", tool_calls=[{"name": name, "args": {ARGUMENTS.get(name, "text"): text}, "id": "1"}])


@tool
def remember(text: str, runtime: ToolRuntime[User]) -> str:
    """Keep a fact."""
    runtime.store.put(("memories", runtime.context.user_id), uuid.uuid4().hex, {"text": text})
    return "kept"


@tool
async def recall(text: str, runtime: ToolRuntime[User]) -> str:
    """Find a fact."""
    results = await runtime.store.asearch(("memories", runtime.context.user_id), query=text, limit=1)
    return results[0].value["text"] if results else "nothing"


@tool("recall")
def recall_sync(text: str, runtime: ToolRuntime[User]) -> str:
    """Find a fact."""
    results = runtime.store.search(("memories", runtime.context.user_id), query=text, limit=1)
    return results[0].value["text"] if results else "nothing"


@pytest.fixture
def store(word_memory):
    return MeVeStore(word_memory, namespaces="memories/{user_id}/*")


def make_agent(store, recall_tool):
    model = ScriptedChatModel(answer=call_named_tool)
    return create_agent(model, tools=[remember, recall_tool], store=store, context_schema=User)


def user_input(text):
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("is_async", [False, True])
def test_agent_finds_fact_of_earlier_conversation_of_same_user(store, is_async):
    def ask(text, user):
        if is_async:
            result = asyncio.run(make_agent(store, recall).ainvoke(user_input(text), context=User(user)))
        else:
            result = make_agent(store, recall_sync).invoke(user_input(text), context=User(user))
        return result["messages"][-1].content

    ask("remember: Alice drinks green tea", "alice")
    assert ask("recall: green tea", "alice") == "Alice drinks green tea"
    assert ask("recall: green tea", "bob") == "nothing"


def test_concurrent_conversations_stay_separate(store):
    one = make_agent(store, recall_sync)
    users = [f"user{n}" for n in range(20)]

    def talk(user):
        one.invoke(user_input(f"remember: I am {user}"), context=User(user))
        return one.invoke(user_input("recall: who am I?"), context=User(user))["messages"][-1].content

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, users)) == [f"I am {user}" for user in users]

    async def all_at_once():
        other = make_agent(store, recall)
        talks = (other.ainvoke(user_input("recall: who am I?"), context=User(user)) for user in users)
        return [result["messages"][-1].content for result in await asyncio.gather(*talks)]

    assert asyncio.run(all_at_once()) == [f"I am {user}" for user in users]


class TestLangmem:
    """langmem's tools, unmodified; langmem isn't in the dev extra, since it brings vendors' packages."""

    @pytest.fixture
    def tools(self):
        langmem = pytest.importorskip("langmem", reason="langmem isn't installed")
        namespace = ("memories", "{langgraph_user_id}")
        return langmem.create_manage_memory_tool(namespace=namespace), langmem.create_search_memory_tool(
            namespace=namespace
        )

    def test_langmem_tools_store_and_find_facts_of_user(self, tools, store):
        manage, search = tools
        one = create_agent(ScriptedChatModel(answer=call_named_tool), tools=[manage, search], store=store)
        for user in ("alice", "bob"):
            config = {"configurable": {"langgraph_user_id": user}}
            one.invoke(user_input(f"manage_memory: {user} drinks green tea"), config)
        for user, other in (("alice", "bob"), ("bob", "alice")):
            config = {"configurable": {"langgraph_user_id": user}}
            expected = one.invoke(user_input("search_memory: green tea"), config)["messages"][-1].content
            assert f"{user} drinks green tea" in expected
            assert other not in expected
