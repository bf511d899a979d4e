"""Test what `pip install 'meve[langchain]'` provides, in an environment with nothing else (see try_wheel.py)."""

import importlib
import sys
import tempfile

from install_checks import assert_extra_is_named, assert_not_installed
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

import langchain_meve
from langchain_meve import (
    MeVeCompressor,
    MeVeEmbeddings,
    MeVeRetriever,
    MeVeVectorStore,
    create_memory_tools,
    create_meve_tool,
)

LOADED = {"faiss", "onnxruntime", "sentence_transformers", "tiktoken", "tokenizers", "torch", "transformers"}
assert not LOADED & set(sys.modules), "importing it and its names loads no model and no index"
FRAMEWORKS = "langchain", "langchain_classic", "langchain_community", "langgraph.graph"
assert_not_installed("torch", "sentence_transformers", *FRAMEWORKS)
assert "site-packages" in langchain_meve.__file__, langchain_meve.__file__
SUN, BREAD = "Tomatoes want six to eight hours of sun a day.", "Bread is baked from flour and water."
QUESTION = "How much sun do tomatoes want?"
documents = [Document(SUN, id="sun"), Document(BREAD, id="bread")]

retriever = MeVeRetriever.from_documents(documents, k=1)
assert [d.id for d in retriever.invoke(QUESTION)] == ["sun"]
assert create_meve_tool(retriever).invoke({"query": QUESTION}) == SUN
assert MeVeCompressor.make(k=1).compress_documents(documents, QUESTION)[0].id == "sun"
store = MeVeVectorStore(InMemoryVectorStore(MeVeEmbeddings()))
store.add_documents(documents)
assert store.as_verified_retriever(k=1).invoke(QUESTION)[0].page_content == SUN
from meve.errors import MissingExtraError  # noqa: E402 (after what must not load anything)
from meve.memory import GovernedMemory  # noqa: E402

with tempfile.TemporaryDirectory() as folder, GovernedMemory.open(f"{folder}/memory.db") as memory:
    remember, recall, *_ = create_memory_tools(memory, "ann")
    assert remember.invoke({"text": "I grow tomatoes in the sun."}).startswith("Remembered")
    assert "in the sun" in recall.invoke({"query": "Where do I grow tomatoes?"})
for name, extra in (("MeVeMemoryMiddleware", "langchain-agents"), ("MeVeMemory", "langchain-classic")):
    package = langchain_meve if extra == "langchain-agents" else importlib.import_module("langchain_meve.classic")
    try:
        getattr(package, name)
    except MissingExtraError as error:
        assert f"pip install 'meve[{extra}]'" in str(error), error
    else:
        raise AssertionError(f"{name} must say which extra it needs")
assert "torch" not in sys.modules
assert_extra_is_named("langchain_core", "langchain_meve", "MeVeRetriever", "langchain")
sys.stdout.write("an install with the langchain extra works\n")
