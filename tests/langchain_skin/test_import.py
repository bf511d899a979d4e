"""What importing the integration loads: nothing by itself, no models with its names. In a process of its own."""

import json
import subprocess
import sys

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
    names = ", ".join(langchain_meve.__all__)
    found = loaded(f"from langchain_meve import {names}")
    assert {"meve", "numpy"} <= found
    assert not found & HEAVY
