"""The packages that importing langchain_meve loads, measured in a process of its own."""

import json
import subprocess
import sys

import pytest

import langchain_meve

HEAVY = {
    "chromadb",
    "faiss",
    "langchain",
    "langchain_classic",
    "langchain_community",
    "onnxruntime",
    "qdrant_client",
    "sentence_transformers",
    "tiktoken",
    "tokenizers",
    "torch",
    "transformers",
}


def loaded_packages(code):
    """Return the packages that `code` loads beyond langchain_core's retrievers."""
    script = (
        "import json, sys, langchain_core.retrievers\n"
        f"before = set(sys.modules)\n{code}\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(process.stdout))


def test_import_loads_only_the_package():
    assert loaded_packages("import langchain_meve") == {"langchain_meve"}


def test_names_load_no_models_and_no_vector_store():
    """All names but the middleware, which loads LangChain's agents."""
    names = [name for name in langchain_meve.__all__ if name != "MeVeMemoryMiddleware"]
    results = loaded_packages(f"from langchain_meve import {', '.join(names)}")
    assert {"meve", "numpy"} <= results
    assert not results & HEAVY


def test_middleware_loads_langchain_but_no_model():
    results = loaded_packages("from langchain_meve import MeVeMemoryMiddleware")
    assert results & HEAVY == {"langchain"}


@pytest.mark.parametrize(
    ("absent", "package", "name", "extra"),
    [
        ("langchain", "langchain_meve", "MeVeMemoryMiddleware", "langchain-agents"),
        ("langchain_core", "langchain_meve", "create_memory_tools", "langchain"),
        ("langchain_classic", "langchain_meve.classic", "MeVeMemory", "langchain-classic"),
        ("langchain_core", "langchain_meve.classic", "MeVeChatMessageHistory", "langchain-classic"),
    ],
)
def test_missing_framework_error_names_the_extra(absent, package, name, extra):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from meve.errors import MissingExtraError\n"
        f"import {package} as package\n"
        f"try:\n    package.{name}\n"
        f"except MissingExtraError as error:\n    assert \"pip install 'meve[{extra}]'\" in str(error), error\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
