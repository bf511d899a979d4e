"""`meve serve` as a process, with the models that ship, until it is stopped or its client dies."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from datetime import timedelta

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from meve import Retriever
from meve.memory import GovernedMemory
from tests.serve.servers import ENVIRONMENT, TEXTS, Served, serving
from tests.served_process import MEVE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with an index."""
    folder = tmp_path_factory.mktemp("files")
    Retriever.from_texts(TEXTS).save(folder / "index")
    server = Retriever.over(f"qdrant://{folder / 'server'}", collection="plants")
    server.add(TEXTS)
    server.close()
    return folder


def run(*arguments):
    command = [*MEVE, "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_tokens_are_granted_served_and_revoked_and_sigterm_closes_the_memory(folder, tmp_path):
    tokens, memory, log = (tmp_path / name for name in ("tokens.json", "memory.db", "log"))
    bearer = run("grant", "--user", "anna", "--tokens", tokens, "--name", "laptop").stdout.strip()
    reader = run("grant", "--user", "anna", "--tokens", tokens, "--read-only").stdout.strip()
    assert re.fullmatch(
        r"laptop  anna  reads and writes\nanna-\w{6}  anna  reads\n", run("tokens", "--tokens", tokens).stdout
    )
    with GovernedMemory.open(memory) as opened:
        opened.add("Anna had a meeting today.", user_id="anna", id="meeting", ttl=timedelta(microseconds=1))
    options = ("--index", folder / "index", "--memory", memory, "--tokens", tokens, "--maintain-every", "1h")
    with serving(*options, log=log) as (process, url):
        served = Served(url)
        served.tokens = {"anna": bearer, "reader": reader}
        assert "Water tomatoes" in served.post("search_documents", {"query": "How often are tomatoes watered?"}).text
        assert served.post("remember", {"text": "Anna waters the roses on Mondays."}).json()["added"]
        assert "Mondays" in served.post("recall", {"query": "When are the roses watered?"}, "reader").text
        with pytest.raises(OSError):  # noqa: PT011 - bound to loopback's first address, not to all
            socket.create_connection(("127.0.0.2", served.port), 5).close()
        assert "revoked laptop" in run("revoke", "laptop", "--tokens", tokens).stdout
        assert served.post("recall", {"query": "roses"}).status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not [*tmp_path.glob("memory.db-*")]  # it closed the file, which is whole without its log
    with GovernedMemory.open(memory) as opened:
        assert [record.text for record in opened.list(user_id="anna")] == ["Anna waters the roses on Mondays."]
        assert [event.record_id for event in opened.audit.events(action="expire")] == ["meeting"]
    written = log.read_text()
    assert "roses" not in written
    assert bearer not in written


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "there is nothing to serve"),
        (("--index", "postgresql://server/plants"), "needs --collection"),
        (("--index", "i", "--maintain-every", "1h"), "--maintain-every needs --memory"),
        (("--memory", "m.db"), "--memory needs --user"),
        (("--memory", "m.db", "--user", "anna", "--collection", "c"), "--collection needs --index URL"),
        (("--memory", "m.db", "--user", "anna", "--host", "0.0.0.0"), "0.0.0.0 is open to other machines"),
        (("--memory", "m.db", "--user", "anna", "--host", "::"), ":: is open to other machines"),
        (("--memory", "m.db", "--user", "anna", "--tokens", "t"), "leave --user out"),
        (("--memory", "m.db", "--user", "anna", "--tokens", "t", "--stdio"), "leave --tokens out"),
        (("--memory", "m.db", "--tokens", "nowhere"), "there is no token file nowhere"),
    ],
)
def test_server_does_not_start(meve, tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    result = meve("serve", *options)
    assert result.exit_code == 1
    assert told in " ".join(result.stderr.split())
    assert not [*tmp_path.iterdir()]


def test_password_in_the_url_of_an_index_is_refused(meve):
    result = meve("serve", "--index", "postgresql://anna:secret@server/plants", "--collection", "c")
    assert result.exit_code == 2
    assert "in the list of processes: leave the password out" in " ".join(result.stderr.split())


def test_all_addresses_need_a_host_name(meve, tmp_path):
    assert meve("serve", "grant", "--user", "anna", "--tokens", tmp_path / "t").exit_code == 0
    result = meve("serve", "--memory", tmp_path / "m.db", "--tokens", tmp_path / "t", "--host", "0.0.0.0")
    assert (result.exit_code, "--allow-host" in result.stderr) == (1, True)


STDIO = ("serve", "--stdio", "--user", "anna")


async def test_reference_client_is_served_over_stdio(folder, tmp_path):
    index = ("--index", f"qdrant://{folder / 'server'}", "--collection", "plants")
    arguments = [*MEVE[1:], *STDIO, *index, "--memory", str(tmp_path / "memory.db")]
    server = StdioServerParameters(command=MEVE[0], args=arguments, env=ENVIRONMENT)
    async with Client(server) as client:
        found = await client.call_tool("search_documents", {"query": "How often are tomatoes watered?"})
        assert "Water tomatoes" in found.content[0].text
        kept = await client.call_tool("remember", {"text": "Anna waters the roses on Mondays."})
        told = await client.read_resource(f"meve://memory/{kept.structured_content['id']}")
        assert "a model asked for it" in told.contents[0].text
    assert not [*tmp_path.glob("memory.db-*")]


@contextmanager
def stdio_process(memory, log):
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*MEVE, *STDIO, "--memory", str(memory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True, env=ENVIRONMENT,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


CALL = {
    "jsonrpc": "2.0", "id": 2, "method": "tools/call",
    "params": {"name": "remember", "arguments": {"text": "Anna waters the roses on Mondays."}},
}  # fmt: skip
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def say(process, *messages):
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


@pytest.mark.parametrize("end", ["closed", "left", "SIGTERM"])
def test_stdio_server_ends_and_closes_the_memory(tmp_path, end):
    memory = tmp_path / "memory.db"
    with stdio_process(memory, tmp_path / "log") as process:
        say(process, HELLO)
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "meve"
        say(process, READY, CALL)
        assert not json.loads(process.stdout.readline())["result"]["isError"]
        if end == "left":  # before an answer
            process.stdout.close()
            say(process, {**CALL, "id": 3})
        if end != "SIGTERM":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (tmp_path / "log").read_text()
    assert not [*tmp_path.glob("memory.db-*")]
    assert (tmp_path / "log").read_text() == ""


def test_killed_clients_leave_no_thread_at_work(folder, tmp_path):
    """More clients than threads die in the midst of a request, and others are served."""
    options = ("--memory", tmp_path / "memory.db", "--user", "anna", "--rate", 10_000, "--burst", 10_000)
    with serving(*options, log=tmp_path / "log") as (process, url):
        served = Served(url)

        def die(n):
            body = json.dumps({"text": f"Book number {n} is red."}).encode()
            with socket.create_connection(("127.0.0.1", served.port), 20) as connection:
                lines = ["POST /v1/remember HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
                head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
                connection.sendall(head + body if n % 2 else head + body[:5])
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # as if killed

        threads = [threading.Thread(target=die, args=(n,)) for n in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        wait_for(lambda: served.post("recall", {"query": "Which books are red?"}).status_code == 200)
        tasks = f"/proc/{process.pid}/task"
        if os.path.isdir(tasks):
            before = len(os.listdir(tasks))
            for _ in range(10):
                assert served.post("recall", {"query": "Which books are red?"}).status_code == 200
            assert len(os.listdir(tasks)) <= before
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "rror" not in (tmp_path / "log").read_text()
