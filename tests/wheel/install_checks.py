"""Checks that the install tests share; try_wheel.py copies this file beside each of them."""

import importlib.util
import subprocess
import sys

WITHOUT_PACKAGE = """
import importlib, sys
sys.modules[{package!r}] = None
from meve.errors import MissingExtraError
module = importlib.import_module({module!r})
try:
    getattr(module, {name!r})
except MissingExtraError as error:
    assert "pip install 'meve[{extra}]'" in str(error), error
else:
    raise AssertionError("it must say which extra it needs")
"""


def assert_not_installed(*packages: str) -> None:
    """Check that packages aren't part of the install."""
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # the parent package is missing too
            spec = None
        assert spec is None, f"{package} is not part of this install"


def assert_extra_is_named(package: str, module: str, name: str, extra: str) -> None:
    """Check that without a package, a name of a module raises an error with the extra's pip command."""
    code = WITHOUT_PACKAGE.format(package=package, module=module, name=name, extra=extra)
    subprocess.run([sys.executable, "-c", code], check=True)
