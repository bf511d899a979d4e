"""The commands in `docs` print what the pages show."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def read_commands(page):
    """Yield each command of a page's `console` blocks with the output lines below it."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)
    for block in blocks:
        for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


def matches_page(output, expected):
    """Return whether the output matches a page, where … stands for the rest of a word or a line, or alone for lines."""
    lines = [
        "(?:.*\n)+" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
        for line in expected.splitlines(keepends=True)
    ]
    return re.fullmatch("".join(lines), output) is not None


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("memory-command-line.md", {"meve", "export", "echo", "head"}),
        ("privacy-requests.md", {"meve", "export", "head"}),
    ],
)
def test_documented_memory_commands_print_what_the_page_shows(page, kinds, meve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    for command, expected in read_commands(page):
        words = shlex.split(command)
        seen.append(words[0])
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            monkeypatch.setenv(name, value)
        elif words[0] == "meve":
            result = meve(*words[1:])
            assert matches_page(result.stdout + result.stderr, expected), f"$ {command}\n{result.stdout}{result.stderr}"
            assert (result.exit_code != 0) == expected.startswith("error: ")
        else:
            subprocess.run(command, shell=True, check=True)
    assert kinds <= set(seen)


@pytest.mark.parametrize(
    ("expected", "is_like"), [("a …\n", True), ("a … c\n", True), ("a\n", False), ("b …\n", False), ("a (…)\n", False)]
)
def test_example_that_differs_is_detected(expected, is_like):
    assert matches_page("a b c\n", expected) is is_like


@pytest.mark.parametrize(
    ("expected", "is_like"), [("a\n…\n", True), ("a…\n", False), ("a\n", False), ("b\n…\n", False)]
)
def test_line_of_dots_alone_stands_for_lines(expected, is_like):
    assert matches_page("a\nb\nc\n", expected) is is_like
