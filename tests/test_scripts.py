"""What the scripts of benchmarks and recipes import from the packages exists."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("meve", "langchain_meve", "llama_index_meve")
SCRIPTS = sorted(file for folder in ("benchmarks", "recipes") for file in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_imported_names_exist(script):
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            module = import_module(node.module)
            for name in (each.name for each in node.names):
                assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), f"{node.module} has no {name}"
