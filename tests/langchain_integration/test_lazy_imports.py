"""What importing the integration loads: nothing by itself, no models with its names. In a process of its own."""

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


def loaded(code):
    """The packages that code loads beyond langchain_core's retrievers."""
    told = (
        "import json, sys, langchain_core.retrievers\n"
        f"before = set(sys.modules)\n{code}\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_it_loads_nothing_else():
    assert loaded("import langchain_meve") == {"langchain_meve"}


def test_its_names_load_neither_torch_nor_models_nor_somebodys_store():
    """Nor an agents' framework, but for the one name that is for agents."""
    names = [name for name in langchain_meve.__all__ if name != "MeVeMemoryMiddleware"]
    found = loaded(f"from langchain_meve import {', '.join(names)}")
    assert {"meve", "numpy"} <= found
    assert not found & HEAVY


def test_middleware_loads_what_agents_need_and_no_model():
    found = loaded("from langchain_meve import MeVeMemoryMiddleware")
    assert found & HEAVY == {"langchain"}


@pytest.mark.parametrize(
    ("absent", "package", "name", "extra"),
    [
        ("langchain", "langchain_meve", "MeVeMemoryMiddleware", "langchain-agents"),
        ("langchain_core", "langchain_meve", "create_memory_tools", "langchain"),
        ("langchain_classic", "langchain_meve.classic", "MeVeMemory", "langchain-classic"),
        ("langchain_core", "langchain_meve.classic", "MeVeChatMessageHistory", "langchain-classic"),
    ],
)
def test_a_name_whose_framework_is_absent_says_which_extra_it_needs(absent, package, name, extra):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        "from meve.errors import MissingExtraError\n"
        f"import {package} as package\n"
        f"try:\n    package.{name}\n"
        f"except MissingExtraError as error:\n    assert \"pip install 'meve[{extra}]'\" in str(error), error\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
