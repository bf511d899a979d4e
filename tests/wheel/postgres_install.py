"""Test what `pip install 'meve[postgres]'` provides, in an environment with nothing else (see try_wheel.py)."""

import sys

from install_checks import assert_not_installed

import meve
from meve.errors import StorageError
from meve.service.kernel import GraphKernel, SigningKey, SigningKeys

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "pytest", "uvicorn")
try:  # no server listens on port 1
    GraphKernel.open("postgresql://127.0.0.1:1/graph", SigningKeys(current="a", keys=(SigningKey.generate("a"),)))
except StorageError as error:
    assert "graph at 127.0.0.1 can't be used: connection" in str(error), error
else:
    raise AssertionError("nothing listens there")
sys.stdout.write("an install with the postgres extra works\n")
