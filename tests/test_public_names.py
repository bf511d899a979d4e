"""Test which names are public, and that users need no others."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import langchain_meve
import llama_index_meve
import meve
from meve import errors

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("notebooks/*.ipynb"))]


def test_all_is_sorted_and_complete():
    assert meve.__all__ == sorted(meve.__all__)
    public = {
        name for name, value in vars(meve).items() if not name.startswith("_") and not inspect.ismodule(value)
    } | {"__version__"}
    assert public == set(meve.__all__)


def test_public_dataclasses_are_frozen_and_keyword_only():
    for name in meve.__all__:
        value = getattr(meve, name)
        if dataclasses.is_dataclass(value):
            assert value.__dataclass_params__.frozen, name
            assert all(f.kw_only for f in dataclasses.fields(value)), name


def every_error():
    return [e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.MeveError)]


def test_error_tree_equals_the_drawing():
    lines = [line for line in errors.__doc__.splitlines() if "Error" in line and line.startswith("    ")]
    stack, drawn = [], {}
    for line in lines:
        name = next(word for word in line.replace("│", " ").split() if word.endswith("Error"))
        depth = (line.index(name) - 4) // 4
        del stack[depth:]
        drawn[name] = stack[-1] if stack else None
        stack.append(name)
    real = {
        e.__name__: next((b.__name__ for b in e.__bases__ if issubclass(b, errors.MeveError)), None)
        for e in every_error()
    }
    assert drawn == real


@pytest.mark.parametrize("error", every_error())
def test_error_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error("what, which, what next")))
    assert type(again) is error
    assert str(again) == "what, which, what next"


def test_import_loads_no_model_library_or_framework():
    heavy = ("torch", "transformers", "sentence_transformers", "sklearn", "faiss", "tiktoken", "onnxruntime", "typer")
    code = f"import sys, meve; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("package", [meve, langchain_meve, llama_index_meve], ids=lambda package: package.__name__)
def test_every_module_imports_and_has_a_docstring(package):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            assert importlib.import_module(module.name).__doc__, module.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documentation_imports_only_public_modules(page):
    imports = re.findall(r"(?:from|import) +((?:meve|langchain_meve|llama_index_meve)[\w.]*)", page.read_text("utf-8"))
    assert [module for module in imports if "._" in module] == []


def test_import_prints_nothing_and_sets_up_no_logging():
    code = (
        "import logging\n"
        "import meve, meve.testing.fakes, meve.ingest, meve.cli\n"
        "assert not logging.root.handlers\n"
        "assert [type(each) for each in logging.getLogger('meve').handlers] == [logging.NullHandler]\n"
        "logging.getLogger('meve.retrieval').warning('unseen')\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
