"""Test that importing a contract suite without its packages names the extra that installs them."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import meve.testing
from meve._extras import require_imports

SUITES = [f"meve.testing.{module.name}" for module in pkgutil.iter_modules(meve.testing.__path__)]
CONTRACTS = [name for name in SUITES if name.endswith("_contract")]


def import_error(name, *missing):
    """Return the error of importing a module in a new process without some packages."""
    code = f"import sys\nfor name in {missing!r}:\n    sys.modules[name] = None\nimport {name}"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return process.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("name", CONTRACTS)
def test_contract_suite_without_pytest_names_its_extra(name):
    message = "meve.errors.MissingExtraError: a contract suite of meve.testing needs 'pytest' and 'hypothesis', "
    assert import_error(name, "pytest", "hypothesis") == f"{message}which aren't installed: pip install 'meve[testing]'"


@pytest.mark.parametrize(
    ("name", "missing", "needs"),
    [
        ("meve.testing.dense_contract", ["hypothesis"], "'hypothesis', which isn't installed: pip install 'meve[tes"),
    ],
)
def test_error_names_only_missing_packages(name, missing, needs):
    message = import_error(name, *missing)
    assert message.startswith("meve.errors.MissingExtraError: ")
    assert f" needs {needs}" in message


@pytest.mark.parametrize("name", sorted(set(SUITES) - set(CONTRACTS)))
def test_fakes_import_without_extras(name):
    assert import_error(name, "pytest", "hypothesis") == ""


def test_other_import_error_is_not_replaced():
    with (
        pytest.raises(ImportError, match=r"No module named 'no_such_module'"),
        require_imports("this", {"pytest": "testing"}),
    ):
        import_module("no_such_module")
