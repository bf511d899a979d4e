"""Memory tools of LlamaIndex: one user's, fixed by the program; the functions are those of the LangChain tools."""

import asyncio

import pytest

pytest.importorskip("llama_index.core")

from llama_index_meve import create_memory_tools
from meve.errors import ConfigurationError, ValidationError
from tests.memories import open_memory

QUESTION = "What is my dog called?"


@pytest.fixture
def memory(file, clock):
    with open_memory(file, clock=clock) as it:
        yield it


def build_tools(memory, user="ann", **options):
    return {each.metadata.name: each for each in create_memory_tools(memory, user, **options)}


def test_a_fact_is_remembered_updated_and_forgotten(memory):
    tools = build_tools(memory, session_id="s")
    assert tools["remember"].call(text="My dog is called Rex.").content.startswith("Remembered until ")
    (former,) = memory.list(user_id="ann")
    assert (former.source, former.session_id) == ("chat_assistant", "s")
    memory.clock.inner.advance(memory.policy.rule("ephemeral").ttl)
    assert tools["update"].call(text="My dog is called Max.", id=former.id).content.startswith("Updated (id ")
    (record,) = memory.list(user_id="ann")
    assert f", chat_assistant:\n[1] My dog is called Max. (id {record.id})" in (
        tools["recall"].call(query=QUESTION).content
    )
    assert memory.get(former.id, user_id="ann").superseded_by == record.id
    assert "a model asked for it" in tools["explain"].call(query=QUESTION).content
    assert record.id in tools["forget"].call(id=record.id).content
    assert tools["recall"].call(query=QUESTION).content == "Nothing is remembered about this."


def test_another_users_memory_is_neither_shown_nor_changed(memory):
    memory.add("My dog is called Rex.", user_id="bob", id="rex")
    tools = build_tools(memory)
    assert "Rex" not in tools["recall"].call(query=QUESTION).content
    for name, arguments in (("update", {"id": "rex", "text": "Gone."}), ("forget", {"id": "rex"})):
        assert "no memory 'rex'" in tools[name].call(**arguments).content
    assert memory.get("rex", user_id="bob").text == "My dog is called Rex."
    assert "user" not in str([each.metadata.get_parameters_dict()["properties"] for each in tools.values()]).split("'")


def test_async_calls_run_in_the_thread_of_the_memory(memory):
    tools = build_tools(memory)
    assert asyncio.run(tools["remember"].acall(text="My dog is called Rex.")).content.startswith("Remembered")
    assert "Rex" in asyncio.run(tools["recall"].acall(query=QUESTION)).content


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("update", {"id": "x"}, "The call failed: text: Field required"),
        ("recall", {"question": QUESTION}, "The call failed: query: Field required"),
        ("remember", {"text": 5}, "The call failed: text: Input should be a valid string, got 5"),
    ],
)
def test_model_is_told_which_argument_is_missing_or_wrong(memory, name, arguments, told):
    tool = build_tools(memory)[name]
    assert tool.call(**arguments).content == asyncio.run(tool.acall(**arguments)).content == told


def test_invalid_arguments_are_refused(memory):
    with pytest.raises(ConfigurationError, match="names must be a list"):
        create_memory_tools(memory, "ann", names=["erase"])
    with pytest.raises(ValidationError, match="user_id"):
        create_memory_tools(memory, None)
    assert [each.metadata.name for each in create_memory_tools(memory, "ann", names=["recall"])] == ["recall"]
