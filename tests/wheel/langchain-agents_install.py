"""Test what `pip install 'meve[langchain-agents]'` provides, in an environment with nothing else (see try_wheel.py)."""

import sys
import tempfile

from install_checks import assert_not_installed
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_meve import MeVeMemoryMiddleware, create_memory_tools
from meve.memory import GovernedMemory

assert_not_installed("torch", "langchain_classic", "langchain_community", "sentence_transformers")

with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(f"{folder}/memory.db") as memory:
    agent = create_agent(FakeListChatModel(responses=["Noted."]), [], middleware=[MeVeMemoryMiddleware(memory)])
    config = {"configurable": {"user_id": "ann", "thread_id": "monday"}}
    agent.invoke({"messages": [("user", "I have a dog called Rex.")]}, config)
    recall = {tool.name: tool for tool in create_memory_tools(memory)}["recall"]
    assert "Rex" in recall.invoke({"query": "What is my dog called?"}, config)
    assert "Rex" not in recall.invoke({"query": "What is my dog called?"}, {"configurable": {"user_id": "bob"}})
assert "torch" not in sys.modules
sys.stdout.write("an install with the langchain-agents extra works\n")
