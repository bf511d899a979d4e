import pytest

pytest.importorskip("mcp", reason="NOT TESTED: meve serve needs the extra serve")

from typer.testing import CliRunner

from meve.cli.app import app
from tests.serve.servers import make_index, make_tokens, open_memory, serve


@pytest.fixture(scope="module")
def index():
    return make_index()


@pytest.fixture
def memory(tmp_path):
    with open_memory(tmp_path) as memory:
        yield memory


@pytest.fixture(scope="module")
def served(index, tmp_path_factory):
    """Return a server with documents and a memory; anna and bob have tokens, and anna has one that only reads."""
    folder = tmp_path_factory.mktemp("served")
    with open_memory(folder) as memory:
        tokens, given = make_tokens(folder)
        with serve(index, memory, tokens=tokens) as served:
            served.tokens = given
            yield served


@pytest.fixture
def meve():
    """Return a function that runs a command line and returns its result."""
    return lambda *arguments: CliRunner().invoke(app, [str(each) for each in arguments])
