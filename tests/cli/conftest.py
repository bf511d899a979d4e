import json
import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from meve.cli.app import app

TEXTS = {
    "bees.md": "# Bees\n\n## Honey\n\nHoney bees make honey from the nectar of flowers, which they collect, thicken by "
    "evaporation, and store in wax combs.\n\n## Dance\n\nA bee that has found food tells the others the direction "
    "and the distance by a waggle dance.\n",
    "bridges.txt": "A suspension bridge hangs its deck from cables that run over towers and are anchored at both ends.",
    "facts.jsonl": '{"id": "moon", "text": "The Moon turns around the Earth once in about 27 days.", "lang": "en"}\n'
    '{"id": "iron", "text": "Rust forms when iron reacts with oxygen and water.", "lang": "en", "year": 1999, '
    '"until": null}\n',
}


@pytest.fixture(scope="session")
def docs(tmp_path_factory):
    """Return a folder of small texts and one unreadable file."""
    folder = tmp_path_factory.mktemp("docs")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "broken.txt").write_bytes(b"caf\xe9")
    return folder


@pytest.fixture(scope="session")
def indexed(docs, tmp_path_factory):
    """Return the index of these texts and the output of indexing. Tests must not change it."""
    folder = tmp_path_factory.mktemp("index") / "index"
    return folder, CliRunner().invoke(app, ["index", str(docs), "--to", str(folder)])


@pytest.fixture
def index(indexed):
    """Return the folder of an index of small texts. Tests must not change it."""
    return indexed[0]


@pytest.fixture
def meve():
    """Return a function that runs a command line and returns its result."""
    return lambda *arguments, **more: CliRunner().invoke(app, [str(each) for each in arguments], **more)


@pytest.fixture
def on_terminal():
    """Return a function that runs a command on a terminal of given width and returns the visible lines."""
    pty = pytest.importorskip("pty")

    def run(*arguments, columns=80):
        reader, writer = pty.openpty()
        command = [sys.executable, "-m", "meve.cli", *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        with subprocess.Popen(command, stdout=writer, stderr=writer, env=environment) as process:
            os.close(writer)
            output = b""
            with suppress(OSError):  # Linux raises it once the writer has closed
                while chunk := os.read(reader, 4096):
                    output += chunk
        os.close(reader)
        assert process.returncode == 0, output.decode()
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode()).splitlines()]

    return run


@pytest.fixture
def pairs(tmp_path):
    """Write sixty labelled pairs that the cosine separates, and two invalid lines."""
    things = ["moon", "river", "bread", "violin", "camel", "glacier", "printer", "bicycle", "volcano", "library"]
    rows = []
    for thing in things:
        for other in things[:6]:
            rows.append({"query": f"What is a {thing}?", "passage": f"About the {other}.", "relevant": thing == other})
    rows += [{"query": f"Tell me of the {t}", "passage": f"This is a text on the {t}.", "label": 1} for t in things]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), "{", '{"query": "x"}']))
    return path


@pytest.fixture
def memory(meve, tmp_path):
    """Return a function that runs `meve memory` on one file."""
    return lambda *arguments, **more: meve("memory", *arguments, "--file", tmp_path / "memory.db", **more)


@pytest.fixture
def filled(memory):
    for text, *options in (
        ("Tomatoes need 6-8 hours of sun.", "--id", "t", "--source", "doc"),
        ("My PIN is 4711.", "--id", "pin", "--class", "private"),
    ):
        assert memory("add", text, "--user", "alice", *options).exit_code == 0
    return memory
