"""What `docs` shows of the command line is what the command line says."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def shown(page):
    """Each command of a page's `console` blocks, with the lines that stand below it."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


def alike(output, told):
    """Whether it is what a page shows, where … stands for the rest of a word or of a line."""
    return re.fullmatch(".*".join(map(re.escape, told.split("…"))), output) is not None


def test_documented_memory_commands_print_what_the_page_shows(meve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    for command, told in shown("memory.md"):
        words = shlex.split(command)
        seen.append(words[0])
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            monkeypatch.setenv(name, value)
        elif words[0] == "meve":
            done = meve(*words[1:])
            assert alike(done.stdout + done.stderr, told), f"$ {command}\n{done.stdout}{done.stderr}"
            assert (done.exit_code != 0) == told.startswith("error: ")
        else:
            subprocess.run(command, shell=True, check=True)
    assert {"meve", "export", "echo", "head"} <= set(seen)


@pytest.mark.parametrize(
    ("told", "is_like"), [("a …\n", True), ("a … c\n", True), ("a\n", False), ("b …\n", False), ("a (…)\n", False)]
)
def test_example_that_differs_is_detected(told, is_like):
    assert alike("a b c\n", told) is is_like
