"""The script that runs the frameworks' own tests with our classes, on small test trees."""

import os
import re
from pathlib import Path

import pytest

from tests.upstream import run

CONFTEST = """
import os

os.environ["IS_TESTING"] = "1"  # the default model is a mock
"""
ENGINE = """
from llama_index.core.chat_engine import SimpleChatEngine

def test_it_talks():
    engine = SimpleChatEngine.from_defaults()
    engine.chat("Good morning!")
    assert len(engine.chat_history) == 2
"""
PICKY = """
def test_of_the_inside():
    assert SimpleChatEngine.from_defaults()._memory.sql_store
"""
AGENT = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import MockFunctionCallingLLM

async def test_it_answers():
    assert await FunctionAgent(tools=[], llm=MockFunctionCallingLLM()).run("Good morning!")
"""
GIVEN = """
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer

async def test_it_takes_a_memory():
    agent = FunctionAgent(tools=[], llm=MockFunctionCallingLLM())
    assert await agent.run("Good morning!", memory=ChatMemoryBuffer.from_defaults())
"""
MEMORY = """
from llama_index.core.llms import ChatMessage
from llama_index.core.memory.memory import Memory

async def test_it_keeps():
    memory = Memory.from_defaults(session_id="s", table_name="t")
    await memory.aput(ChatMessage("a"))
    assert [message.content for message in await memory.aget()] == ["a"]

def test_that_is_wrong_anyhow():
    assert False
"""
STORE = """
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

async def test_it_stores():
    store = SQLAlchemyChatStore(table_name="t", async_database_uri="sqlite+aiosqlite:///:memory:")
    await store.add_message("s", ChatMessage("a"))
    assert await store.count_messages("s") == 1

async def test_delete_message():
    assert SQLAlchemyChatStore(table_name="t")._table is None
"""
IDLE = """
def test_nothing():
    pass
"""


def tree(folder: Path, **files: str) -> Path:
    places = {
        "engine": "chat_engine/test_simple.py",
        "agent": "agent/workflow/test_agent.py",
        "memory": "memory/test_memory_base.py",
        "store": "storage/chat_store/test_sql.py",
    }
    tests = folder / "llama-index-core" / "tests"
    for name, text in {"conftest.py": CONFTEST, **{places[name]: text for name, text in files.items()}}.items():
        file = tests / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


def rows(text):
    """Return the counts by group: all, stock, ours, calls."""
    counts_by_group = re.findall(r"^\| \S+ \| ([a-z ]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in counts_by_group}


def test_every_group_calls_our_classes(tmp_path, capsys):
    """Tests that fail with stock classes, or inspect their internals, do not count."""
    source = tree(tmp_path, engine=ENGINE, agent=AGENT, memory=MEMORY, store=STORE)
    before = sorted(source.rglob("*"))
    assert run.main([str(source)]) == 0
    counts_by_group = rows(capsys.readouterr().out)
    assert {name: counts[:3] for name, counts in counts_by_group.items()} == {
        "chat engines": (1, 1, 1),
        "agents": (1, 1, 1),
        "memory": (2, 1, 1),
        "chat store": (2, 2, 1),
    }
    assert all(counts[3] > 0 for counts in counts_by_group.values())
    assert sorted(source.rglob("*")) == before


def test_lost_tests_and_uncalled_groups_are_reported(tmp_path, capsys):
    source = tree(tmp_path, engine=ENGINE + PICKY, agent=GIVEN, store=IDLE)
    assert run.main([str(source / "llama-index-core")]) == 1
    out = capsys.readouterr().out
    assert "LOST: chat_engine/test_simple.py::test_of_the_inside" in out
    assert "NOT SWAPPED: ours were never called by the tests of chat store" in out
    assert rows(out)["chat engines"][:3] == (2, 2, 1)
    assert rows(out)["agents"][3] > 0  # of the buffer that a test creates


def test_missing_source_is_reported(capsys):
    assert run.main([]) == 0
    assert "SKIPPED: no source" in capsys.readouterr().out


def test_tree_of_other_tests_is_rejected_and_not_run(tmp_path):
    other = tmp_path / "tests" / "memory" / "test_policy.py"
    other.parent.mkdir(parents=True)
    other.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{IDLE}", "utf-8")
    with pytest.raises(SystemExit, match="holds no tests of LangChain, LangGraph or LlamaIndex"):
        run.main([str(tmp_path)])
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_own_tests_of_frameworks_pass():
    if not os.environ.get(run.VARIABLE):
        pytest.skip(f"no source of a framework: set {run.VARIABLE}")
    assert run.main(os.environ[run.VARIABLE].split(os.pathsep)) == 0
