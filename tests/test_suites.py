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


CODE = """
import sys
from importlib import import_module
missing, names = eval(sys.argv[1])
for name in missing:
    sys.modules[name] = None
for name in names:
    try:
        import_module(name)
    except Exception as error:
        print(name, type(error).__name__, error)
"""


def import_errors(names, *missing):
    """Return the errors of importing modules in a new process without some packages."""
    process = subprocess.run([sys.executable, "-c", CODE, repr((missing, names))], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()


def test_contract_suites_without_pytest_name_their_extra():
    message = (
        "MissingExtraError a contract suite of meve.testing needs 'pytest' and 'hypothesis', which aren't installed: "
        "pip install 'meve[testing]'"
    )
    assert len(CONTRACTS) > 5
    assert import_errors(CONTRACTS, "pytest", "hypothesis") == [f"{name} {message}" for name in CONTRACTS]


@pytest.mark.parametrize(
    ("name", "missing", "needs"),
    [
        ("meve.testing.dense_contract", ["hypothesis"], "'hypothesis', which isn't installed: pip install 'meve[tes"),
    ],
)
def test_error_names_only_missing_packages(name, missing, needs):
    (message,) = import_errors([name], *missing)
    assert message.startswith(f"{name} MissingExtraError ")
    assert f" needs {needs}" in message


def test_fakes_import_without_extras():
    assert import_errors(sorted(set(SUITES) - set(CONTRACTS)), "pytest", "hypothesis") == []


def test_other_import_error_is_not_replaced():
    with (
        pytest.raises(ImportError, match=r"No module named 'no_such_module'"),
        require_imports("this", {"pytest": "testing"}),
    ):
        import_module("no_such_module")
