"""Test what `pip install 'meve[langgraph]'` provides, in an environment with nothing else (see try_wheel.py)."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from install_checks import assert_extra_is_named, assert_not_installed
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

import langchain_meve
from langchain_meve import MeVeStore
from meve.memory import GovernedMemory

assert "site-packages" in langchain_meve.__file__, langchain_meve.__file__
assert_not_installed(
    "torch", "sentence_transformers", "pytest", "langchain", "langchain_classic", "langchain_community"
)
PLACE = ("memories", "alice")

with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder) / "memory.db") as memory:
    store = MeVeStore(memory, namespaces="memories/{user_id}/*")

    def remember(state: dict, runtime: Runtime) -> dict:
        """A node of a graph that keeps a fact."""
        runtime.store.put(PLACE, "drink", {"text": "Alice drinks green tea."})
        return state

    graph = StateGraph(dict).add_node(remember).add_edge(START, "remember").compile(store=store)
    graph.invoke({"said": "green tea, please"})
    assert [item.key for item in store.search(PLACE, query="What does she drink?")] == ["drink"]
    assert asyncio.run(store.asearch(("memories", "bob"), query="What does she drink?")) == []
    assert len(store.delete_namespace(PLACE).erased) == 1
assert "torch" not in sys.modules
without = "import sys; sys.modules['langgraph'] = None; import langchain_meve; langchain_meve.MeVeRetriever"
subprocess.run([sys.executable, "-c", without], check=True)
assert_extra_is_named("langgraph", "langchain_meve", "MeVeStore", "langgraph")
sys.stdout.write("an install with the langgraph extra works\n")
