"""What is public, and that it is what the documentation says."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys

import pytest

import meve
from meve import errors


def test_the_list_of_public_names_is_sorted_and_true():
    """Nothing in it is missing, and nothing public is missing from it."""
    assert meve.__all__ == sorted(meve.__all__)
    public = {
        name for name, value in vars(meve).items() if not name.startswith("_") and not inspect.ismodule(value)
    } | {"__version__"}
    assert public == set(meve.__all__)


def test_every_public_dataclass_is_frozen_and_keyword_only():
    """Values don't change, and are made by name."""
    for name in meve.__all__:
        value = getattr(meve, name)
        if dataclasses.is_dataclass(value):
            assert value.__dataclass_params__.frozen, name
            assert all(f.kw_only for f in dataclasses.fields(value)), name


def every_error():
    return [e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.MeveError)]


def test_the_tree_of_errors_is_as_drawn():
    """Each class stands in the drawing under its parent, and the drawing holds no others."""
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
def test_errors_survive_pickling(error):
    """Across processes, with their message."""
    again = pickle.loads(pickle.dumps(error("what, which, what next")))
    assert type(again) is error
    assert str(again) == "what, which, what next"


def test_importing_meve_loads_nothing_heavy():
    """Neither torch nor models, nor a framework."""
    heavy = ("torch", "transformers", "sentence_transformers", "sklearn", "faiss", "tiktoken", "onnxruntime", "typer")
    code = f"import sys, meve; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_every_module_can_be_imported_and_says_what_it_is_for():
    """One sentence at the top of each file."""
    for module in pkgutil.walk_packages(meve.__path__, "meve."):
        if not module.name.endswith("__main__"):
            assert importlib.import_module(module.name).__doc__, module.name


def test_importing_prints_nothing_and_sets_up_no_logging():
    """A library leaves the process as it found it."""
    code = (
        "import logging\n"
        "import meve, meve.testing.fakes, meve.ingest, meve.cli\n"
        "assert not logging.root.handlers and not logging.getLogger('meve').handlers\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
