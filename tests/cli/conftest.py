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
ANSWERED, UNANSWERED = "How do bees make honey?", "Who won the football world cup in 1974?"


@pytest.fixture(scope="session")
def docs(tmp_path_factory):
    """A folder of small texts, and one file that can't be read."""
    folder = tmp_path_factory.mktemp("docs")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "broken.txt").write_bytes(b"caf\xe9")
    return folder


@pytest.fixture(scope="session")
def indexed(docs, tmp_path_factory):
    """The index of these texts with the bundled model, and what the command said of it. Not to be changed."""
    folder = tmp_path_factory.mktemp("index") / "index"
    return folder, CliRunner().invoke(app, ["index", str(docs), "--to", str(folder)])


@pytest.fixture
def index(indexed):
    """The folder of an index of small texts. Not to be changed."""
    return indexed[0]


@pytest.fixture
def meve():
    """Runs a command line, and gives back its result."""
    return lambda *arguments, **more: CliRunner().invoke(app, [str(each) for each in arguments], **more)


@pytest.fixture
def on_terminal():
    """Runs a command line on a terminal of so many columns, in a process; gives back the lines that a reader sees."""
    pty = pytest.importorskip("pty")

    def run(*arguments, columns=80):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "meve.cli", *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as started:
            os.close(theirs)
            shown = b""
            with suppress(OSError):  # what Linux says of a terminal that nobody writes to any more
                while read := os.read(ours, 4096):
                    shown += read
        os.close(ours)
        assert started.returncode == 0, shown.decode()
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).splitlines()]

    return run


@pytest.fixture
def pairs(tmp_path):
    """Sixty labelled pairs, which the cosine can tell apart, and two bad lines."""
    things = ["moon", "river", "bread", "violin", "camel", "glacier", "printer", "bicycle", "volcano", "library"]
    rows = []
    for thing in things:
        for other in things[:6]:
            rows.append({"query": f"What is a {thing}?", "passage": f"About the {other}.", "relevant": thing == other})
    rows += [{"query": f"Tell me of the {t}", "passage": f"This is a text on the {t}.", "label": 1} for t in things]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), "{", '{"query": "x"}']))
    return path
