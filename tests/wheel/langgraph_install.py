"""Test what `pip install 'meve[langgraph]'` provides, in an environment with nothing else (see try_wheel.py)."""

import asyncio
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

import langchain_meve
from langchain_meve import MeVeStore
from meve.memory import GovernedMemory

assert "site-packages" in langchain_meve.__file__, langchain_meve.__file__
for other in ("torch", "langchain", "langchain_classic", "langchain_community", "sentence_transformers", "pytest"):
    assert importlib.util.find_spec(other) is None, f"{other} is not part of this extra"
PLACE = ("memories", "alice")

with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(Path(folder) / "memory.db") as memory:
    store = MeVeStore(memory)

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

without = (
    "import sys; sys.modules['langgraph'] = None\n"
    "import langchain_meve\n"
    "from meve.errors import MissingExtraError\n"
    "langchain_meve.MeVeRetriever\n"
    "try:\n    langchain_meve.MeVeStore\n"
    "except MissingExtraError as error:\n    assert \"pip install 'meve[langgraph]'\" in str(error), error\n"
    "else:\n    raise AssertionError('it must say which extra it needs')\n"
)
subprocess.run([sys.executable, "-c", without], check=True)
sys.stdout.write("an install with the langgraph extra works\n")
