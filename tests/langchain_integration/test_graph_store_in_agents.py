"""MeVeStore under `create_agent`: its tools keep and find facts through `runtime.store`, and nobody finds another's."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_meve import MeVeStore
from meve.memory import GovernedMemory
from meve.testing.fakes import OverlapVerifier, WordCounter, WordEmbedder


@dataclass
class User:
    user_id: str


class Obedient(BaseChatModel):
    """Calls the tool that the user names, `remember: …` or `recall: …`, and repeats what it says."""

    @property
    def _llm_type(self):
        return "obedient"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        last = messages[-1]
        if last.type == "tool":
            return ChatResult(generations=[ChatGeneration(message=AIMessage(last.content))])
        name, _, text = last.content.partition(": ")
        call = {"name": name, "args": {"text": text}, "id": uuid.uuid4().hex}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


@tool
def remember(text: str, runtime: ToolRuntime[User]) -> str:
    """Keep a fact."""
    runtime.store.put(("memories", runtime.context.user_id), uuid.uuid4().hex, {"text": text})
    return "kept"


@tool
async def recall(text: str, runtime: ToolRuntime[User]) -> str:
    """Find a fact."""
    found = await runtime.store.asearch(("memories", runtime.context.user_id), query=text, limit=1)
    return found[0].value["text"] if found else "nothing"


@tool("recall")
def recall_at_once(text: str, runtime: ToolRuntime[User]) -> str:
    """Find a fact."""
    found = runtime.store.search(("memories", runtime.context.user_id), query=text, limit=1)
    return found[0].value["text"] if found else "nothing"


@pytest.fixture
def store(tmp_path):
    parts = {"embedder": WordEmbedder(), "verifier": OverlapVerifier(), "tokens": WordCounter()}
    with GovernedMemory.open(tmp_path / "memory.db", **parts) as memory:
        yield MeVeStore(memory)


def agent(store, finding):
    return create_agent(Obedient(), tools=[remember, finding], store=store, context_schema=User)


def asked(text):
    return {"messages": [{"role": "user", "content": text}]}


def test_a_fact_of_one_conversation_is_known_in_another(store):
    """And to nobody else."""
    one = agent(store, recall_at_once)
    one.invoke(asked("remember: Alice drinks green tea"), context=User("alice"))
    other = agent(store, recall_at_once)
    assert other.invoke(asked("recall: green tea"), context=User("alice"))["messages"][-1].content == (
        "Alice drinks green tea"
    )
    assert other.invoke(asked("recall: green tea"), context=User("bob"))["messages"][-1].content == "nothing"


async def test_the_same_async(store):
    one = agent(store, recall)
    await one.ainvoke(asked("remember: Alice drinks green tea"), context=User("alice"))
    for user, said in (("alice", "Alice drinks green tea"), ("bob", "nothing")):
        done = await one.ainvoke(asked("recall: green tea"), context=User(user))
        assert done["messages"][-1].content == said


def test_many_conversations_at_once_keep_apart(store):
    """In threads, and as tasks."""
    one = agent(store, recall_at_once)
    users = [f"user{n}" for n in range(20)]

    def talk(user):
        one.invoke(asked(f"remember: I am {user}"), context=User(user))
        return one.invoke(asked("recall: who am I?"), context=User(user))["messages"][-1].content

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, users)) == [f"I am {user}" for user in users]

    async def all_at_once():
        other = agent(store, recall)
        talks = (other.ainvoke(asked("recall: who am I?"), context=User(user)) for user in users)
        return [done["messages"][-1].content for done in await asyncio.gather(*talks)]

    assert asyncio.run(all_at_once()) == [f"I am {user}" for user in users]


class TestLangmem:
    """Its tools, as they come. Needs langmem, which isn't among the dev extra: it brings vendors' packages."""

    @pytest.fixture
    def tools(self):
        langmem = pytest.importorskip("langmem", reason="langmem isn't installed")
        place = ("memories", "{langgraph_user_id}")
        return langmem.create_manage_memory_tool(namespace=place), langmem.create_search_memory_tool(namespace=place)

    def test_they_keep_and_find(self, tools, store):
        manage, search = tools
        one = create_agent(Manager(), tools=[manage, search], store=store)
        for user in ("alice", "bob"):
            config = {"configurable": {"langgraph_user_id": user}}
            one.invoke(asked(f"manage_memory: {user} drinks green tea"), config)
        for user, other in (("alice", "bob"), ("bob", "alice")):
            config = {"configurable": {"langgraph_user_id": user}}
            said = one.invoke(asked("search_memory: green tea"), config)["messages"][-1].content
            assert f"{user} drinks green tea" in said
            assert other not in said


class Manager(Obedient):
    """The same, in langmem's words."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        done = super()._generate(messages, stop, run_manager, **kwargs)
        for call in done.generations[0].message.tool_calls:
            name = "content" if call["name"] == "manage_memory" else "query"
            call["args"] = {name: call["args"]["text"]}
        return done
