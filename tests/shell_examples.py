"""The commands in the pages: those of `sh` and `console` blocks, and of indented code."""

import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import typer

from meve.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^```(sh|console)\n(.*?)^```$|^((?: {4}(?:meve|make|pip|python) [^\n]*\n(?: {5,}[^\n]*\n)*)+)", re.M | re.S
)

NOT_RUN = {
    "installs packages: tests/wheel does, with each extra": r"pip (install|download) |python3 -m venv ",
    "runs all tests or the demo": r"make \w",
    "indexes for a minute: tests/wheel/plain_install.py runs the demo": r"meve demo\b",
    "trains for minutes: tests/cli/test_train_verifier.py runs it": r"meve train-verifier ",
    "needs a server: the tests of PostgreSQL start one": r".*postgresql://|pg_dump ",
    "measures for minutes, or needs data": r"meve bench |python (-m )?(benchmarks|recipes)[./]",
    "needs the tests of a framework": r"python tests/upstream/",
}
"""Why commands aren't run, and what they begin with."""


class Example(NamedTuple):
    """A command, and the lines below it if the page shows what it prints."""

    command: str
    output: str | None


def read_examples(text):
    """Return the commands of a page."""
    examples = []
    for kind, block, indented in BLOCK.findall(text):
        if kind == "console":
            parts = (example.partition("\n") for example in re.split(r"^\$ ", block, flags=re.M)[1:])
            examples += [Example(command, output) for command, _, output in parts]
        else:
            lines = re.sub(r"\s*\\\n\s*", " ", block or indented).splitlines()
            commands = (re.sub(r"(^|\s+)# .*", "", line).strip() for line in lines)
            examples += [Example(command, None) for command in commands if command]
    return examples


def reason_not_to_run(command):
    """Return why the tests don't run a command; None if they do."""
    return next((reason for reason, start in NOT_RUN.items() if re.match(start, command)), None)


def check_unrun(command):
    """Fail if a command that isn't run names an option, a module, a target or an extra that isn't there."""
    words = shlex.split(command)
    if words[0] == "meve":
        parse(words[1:])
    elif words[:2] == ["python", "-m"]:
        spec = importlib.util.find_spec(words[2])
        assert spec is not None, f"there is no module {words[2]}"
        check_options(words[3:], Path(spec.origin))
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file(), f"there is no file {words[1]}"
        check_options(words[2:], ROOT / words[1])
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), f"there is no target {words[1]}"
    elif words[0] == "pip":
        extras = re.findall(r"^(\S+) = \[", (ROOT / "pyproject.toml").read_text(), re.M)
        assert {name for each in re.findall(r"meve\[(.*?)\]", command) for name in each.split(",")} <= {*extras}


def check_options(words, script):
    """Fail if a script doesn't define one of the options."""
    options = {name for word in words if (name := word.strip("[]")).startswith("--")}
    source = script.read_text(encoding="utf-8")
    assert not [each for each in options if f'"{each}"' not in source], f"{script.name} doesn't have all of {options}"


def parse(words):
    """Parse the arguments of `meve` as the command line does, without running it."""
    command, name, context = typer.main.get_command(app), "meve", None
    while True:
        context = command.make_context(name, words, parent=context)
        if not (words := [*context._protected_args, *context.args]):
            return
        name, command, words = command.resolve_command(context, words)


def read_inline_commands(text):
    """Return the commands of `meve` in the sentences and tables of a page."""
    return [" ".join(code.split()) for code in re.findall(r"`(meve [^`]+)`", text)]


def find_unknown_options(text):
    """Return the options of a command of `meve` that neither it nor what stands before it has."""
    command, unknown = typer.main.get_command(app), []
    for word in text.replace("/--", " --").split()[1:]:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
        elif word.startswith("--"):
            known = [name for each in command.params for name in (*each.opts, *each.secondary_opts)]
            unknown += [] if word.strip("…,").partition("=")[0] in known else [word]
    return unknown


def read_server_arguments(text):
    """Yield the arguments with which the configurations of clients in a page start `meve`."""
    for block in re.findall(r"^```json\n(\{\n.*?)^```$", text, re.M | re.S):
        for server in json.loads(block)["mcpServers"].values():
            yield server["args"]
