"""Test what `pip install 'meve[langchain-classic]'` provides, in an environment without anything else."""

import sys
import tempfile

from install_checks import assert_not_installed
from langchain_classic.chains import ConversationChain
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from langchain_meve.classic import MeVeChatMessageHistory, MeVeMemory
from meve.memory import GovernedMemory

assert_not_installed("torch", "langchain", "langchain_community", "langgraph.graph", "sentence_transformers")

with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(f"{folder}/memory.db") as memory:
    mine = MeVeMemory(memory=memory, user_id="ann", session_id="monday")
    ConversationChain(llm=FakeListChatModel(responses=["Nice."]), memory=mine).invoke("I have a dog called Rex.")
    assert [m.text for m in MeVeChatMessageHistory(memory, "ann", "monday").messages] == [
        "I have a dog called Rex.", "Nice.",
    ]  # fmt: skip
    tuesday = MeVeMemory(memory=memory, user_id="ann", session_id="tuesday")
    assert "Rex" in tuesday.load_memory_variables({"input": "What is my dog called?"})["history"]
assert "torch" not in sys.modules
sys.stdout.write("an install with the langchain-classic extra works\n")
