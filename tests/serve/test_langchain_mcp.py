"""`meve serve` as a process, called by langchain-mcp-adapters from an environment with version 1 of the MCP SDK."""

import json
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from meve import Retriever
from meve.service.server.tokens import TokenFile
from tests.serve.servers import ENVIRONMENT, TEXTS, serving
from tests.served_process import MEVE

PYTHON = os.environ.get("MEVE_LANGCHAIN_MCP")
PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
TOOLS = ["explain", "forget", "recall", "remember", "search_documents", "update"]

pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="NOT TESTED: MEVE_LANGCHAIN_MCP names no Python with langchain-mcp-adapters (make adapters)"
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Return the folder of an index."""
    folder = tmp_path_factory.mktemp("files") / "index"
    Retriever.from_texts(TEXTS).save(folder)
    return folder


class LangChain:
    """A process with langchain-mcp-adapters, which answers a line with a line."""

    def __init__(self, process, connections):
        self.process = process
        self.tools = self.ask(connections)

    def ask(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or pytest.fail("the client died: its error is above"))

    def call(self, connection, tool, **arguments):
        return self.ask({"connection": connection, "tool": tool, "arguments": arguments})


@contextmanager
def connect(connections):
    command = [PYTHON, "-I", str(Path(__file__).with_name("langchain_mcp_client.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=ENVIRONMENT, **pipes) as process:
        yield LangChain(process, connections)


def run_example(url, token):
    """Run the example of docs/serve.md; return the names of its tools."""
    (example,) = re.findall(r"```python\n(from langchain_mcp_adapters.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    code = f"import asyncio, json\nurl, token = {url!r}, {token!r}\n{example}"
    code += "print(json.dumps(sorted(tool.name for tool in tools)))"
    command = [PYTHON, "-I", "-c", code]
    return json.loads(subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout)


def call_all_tools(client, user):
    """Call the six tools as a user, who then has no memory."""
    found = client.call(user, "search_documents", query="How often are tomatoes watered?")
    assert "Water tomatoes two or three times" in found["text"]
    assert found["content"]["sufficient"]
    assert [each["verified"] for each in found["content"]["passages"]].count(True) == 1
    trace = client.call(user, "explain", what="trace", about=found["content"]["trace_id"])
    fates = [each["fate"] for each in trace["content"]["trace"]["candidates"]]
    assert fates.count("kept") == len(found["content"]["passages"])
    first = client.call(user, "remember", text="Anna waters the roses on Mondays.")["content"]
    recalled = client.call(user, "recall", query="When are the roses watered?")
    assert [each["id"] for each in recalled["content"]["memories"]] == [first["id"]]
    assert "Mondays" in recalled["text"]
    second = client.call(user, "update", id=first["id"], text="Anna waters the roses on Fridays.")["content"]
    assert "Fridays" in client.call(user, "explain", about="roses")["text"]
    erased = client.call(user, "forget", id=second["id"])["content"]["erased"]
    assert set(erased) == {first["id"], second["id"]}
    assert client.call(user, "recall", query="When are the roses watered?")["content"]["memories"] == []


def test_all_tools_are_called_over_standard_input_and_output(index, tmp_path):
    options = ["--stdio", "--index", str(index), "--memory", str(tmp_path / "memory.db"), "--user", "anna"]
    connection = {"transport": "stdio", "command": MEVE[0], "args": [*MEVE[1:], "serve", *options], "env": ENVIRONMENT}
    with connect({"anna": connection}) as client:
        assert client.tools == {"anna": TOOLS}
        call_all_tools(client, "anna")


def test_all_tools_are_called_over_http_and_each_token_reaches_only_its_user(index, tmp_path):
    file = TokenFile(tmp_path / "tokens.json")
    tokens = {"anna": file.grant("anna"), "bob": file.grant("bob"), "reader": file.grant("anna", read_only=True)}
    options = ("--index", index, "--memory", tmp_path / "memory.db", "--tokens", file.path, "--burst", "1000")
    with serving(*options, log=tmp_path / "log") as (_, url):
        connections = {
            name: {
                "transport": "streamable_http", "url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {token}"}
            }
            for name, token in tokens.items()
        }  # fmt: skip
        with connect(connections) as client:
            assert client.tools == {"anna": TOOLS, "bob": TOOLS, "reader": ["explain", "recall", "search_documents"]}
            call_all_tools(client, "anna")
            kept = client.call("anna", "remember", text="Anna waters the lilies on Tuesdays.")["content"]
            query = {"query": "When are the lilies watered?"}
            assert "Tuesdays" in client.call("reader", "recall", **query)["text"]
            recalled = client.call("bob", "recall", **query)
            assert recalled["content"]["memories"] == []
            assert "Tuesdays" not in recalled["text"]
            refused = client.call("bob", "forget", id=kept["id"])
            assert "no memory" in refused["text"]
            assert "Tuesdays" not in client.call("bob", "explain", about="lilies")["text"]
            assert "Tuesdays" in client.call("anna", "recall", **query)["text"]
        assert run_example(f"{url}/mcp", tokens["anna"]) == TOOLS
