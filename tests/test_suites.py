"""Contract suites are written with pytest and hypothesis: who lacks them is told which extra brings them."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import meve.testing
from meve._extras import require_imports

SUITES = [f"meve.testing.{module.name}" for module in pkgutil.iter_modules(meve.testing.__path__)]
CONTRACTS = [name for name in SUITES if name.endswith("_contract")]


def importing(name, *absent):
    """What is said where a module is imported, in a process of its own, and some packages aren't installed."""
    code = f"import sys\nfor name in {absent!r}:\n    sys.modules[name] = None\nimport {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_suite_names_its_extra(name):
    told = "meve.errors.MissingExtraError: a contract suite of meve.testing needs 'pytest' and 'hypothesis', "
    assert importing(name, "pytest", "hypothesis") == f"{told}which aren't installed: pip install 'meve[testing]'"


@pytest.mark.parametrize(
    ("name", "absent", "needs"),
    [
        ("meve.testing.dense_contract", ["hypothesis"], "'hypothesis', which isn't installed: pip install 'meve[tes"),
    ],
)
def test_only_what_is_missing_is_named(name, absent, needs):
    told = importing(name, *absent)
    assert told.startswith("meve.errors.MissingExtraError: ")
    assert f" needs {needs}" in told


@pytest.mark.parametrize("name", sorted(set(SUITES) - set(CONTRACTS)))
def test_fakes_need_no_extra(name):
    assert importing(name, "pytest", "hypothesis") == ""


def test_what_fails_for_another_reason_says_its_own():
    """An import that fails although all that is needed is there."""
    with pytest.raises(ImportError, match=r"No module named 'no_such_module'"), require_imports("this", {"pytest": "testing"}):
        import_module("no_such_module")
