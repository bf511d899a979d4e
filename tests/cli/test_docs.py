"""The commands in README and docs run, and print what the pages show."""

import logging
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections import Counter
from itertools import takewhile
from pathlib import Path

import pytest
import typer

import meve.components.verifiers as verifiers
from tests.shell_examples import (
    PAGES,
    ROOT,
    Example,
    check_unrun,
    find_unknown_options,
    parse,
    read_examples,
    read_inline_commands,
    read_server_arguments,
    reason_not_to_run,
)

EXAMPLES = {page.relative_to(ROOT).as_posix(): read_examples(page.read_text(encoding="utf-8")) for page in PAGES}
UNRUN = [each.command for page in EXAMPLES.values() for each in page if reason_not_to_run(each.command)]
RUN = [name for name, page in EXAMPLES.items() if any(not reason_not_to_run(each.command) for each in page)]
GIVEN = {
    "docs/inspector.md": ["meve index docs/ --to my-index"],
    "docs/own-data.md": ["meve index docs/ --to my-index"],
    "docs/operations.md": ["meve memory add 'I like tea.' --user anna --file memory.db"],
}
"""What pages take as given, by the commands that make it."""
SERVERS = ("meve serve --", "meve kernel serve ")


def test_commands_that_do_not_run_are_few():
    counts = Counter(map(reason_not_to_run, UNRUN))
    assert counts.pop("measures for minutes, or needs data") > 40
    assert counts == {
        "installs packages: tests/wheel does, with each extra": 16,
        "runs all tests or the demo": 2,
        "indexes for a minute: tests/wheel/plain_install.py runs the demo": 2,
        "trains for minutes: tests/cli/test_train_verifier.py runs it": 1,
        "needs a server: the tests of PostgreSQL start one": 4,
        "needs the tests of a framework": 2,
    }
    assert sum(map(len, EXAMPLES.values())) - len(UNRUN) >= 60


@pytest.mark.parametrize("command", sorted(set(UNRUN)))
def test_command_that_does_not_run_is_valid(command):
    check_unrun(command)


@pytest.mark.parametrize(
    "command",
    [
        "meve bench quality --date DATA", "meve benches", "python -m benchmarks.none", "python benchmarks/none.py",
        "python -m benchmarks.routes --none", "python benchmarks/bm25.py --none", "make none",
        "pip install 'meve[serve,none]'",
    ],
)  # fmt: skip
def test_command_that_is_not_valid_is_detected(command):
    assert reason_not_to_run(command) or command == "meve benches"
    with pytest.raises((typer.BadParameter.__base__, AssertionError)):
        check_unrun(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_commands_in_sentences_exist(page):
    commands = read_inline_commands(page.read_text(encoding="utf-8"))
    assert [unknown for each in commands if (unknown := find_unknown_options(each))] == []


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("meve memory forget ID --superseded", []),
        ("meve memory --tenant acme list --user alice", []),
        ("meve memory search --include-superseded", ["--include-superseded"]),
        ("meve memory list --tenant acme", ["--tenant"]),
        ("meve serve grant --inspect", []),
        ("meve serve --inspect", ["--inspect"]),
    ],
)
def test_unknown_option_of_a_command_is_found(command, unknown):
    assert find_unknown_options(command) == unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configurations_of_clients_start_the_server(page):
    for arguments in read_server_arguments(page.read_text(encoding="utf-8")):
        parse(arguments)


class Shell:
    """Runs the commands of a page in a folder, those of `meve` in this process."""

    def __init__(self, meve, patch):
        self.meve, self.patch = meve, patch

    def run(self, example, following):
        words = shlex.split(example.command)
        if words[0] == "export":
            self.patch.setenv(*words[1].split("=", 1))
        elif example.command.startswith(SERVERS):
            self.serve(words[1:], following)
        elif words[0] == "meve":
            arguments = list(takewhile(lambda word: word != ">", words[1:]))
            result = self.meve(*arguments)
            shown = f"$ {example.command}\n{result.stdout}{result.stderr}"
            assert (result.exit_code != 0) == (example.output or "").startswith("error: "), shown
            assert example.output is None or matches_page(result.stdout + result.stderr, example.output), shown
            if arguments != words[1:]:
                Path(words[-1]).write_text(result.stdout)
        elif words[0] != "curl":  # those run while the server before them does
            subprocess.run(example.command, shell=True, check=True)

    def serve(self, arguments, following):
        """Start a server, send it the requests that follow, and stop it."""
        import uvicorn

        run, asked = uvicorn.Server.run, []
        requests = takewhile(lambda each: not each.command.startswith(SERVERS), following)

        def serve_requests(server, sockets):
            thread = threading.Thread(target=run, args=(server, sockets))
            thread.start()
            try:
                for each in requests:
                    if each.command.startswith("curl "):
                        asked.append(ask(each.command, sockets[0].getsockname()[1]))
            finally:
                server.should_exit = True
                thread.join(30)

        self.patch.setattr(uvicorn.Server, "run", serve_requests)
        result = self.meve(*arguments, "--port", "0")
        self.patch.setattr(uvicorn.Server, "run", run)
        assert result.exit_code == 0, result.stderr
        assert "listening on http://127.0.0.1:" in result.stdout
        assert all('"text":' in answer for answer in asked), asked


def ask(command, port):
    """Run a request of a page against another port."""
    command = re.sub(r"(?<=127\.0\.0\.1:)\d+", str(port), command.replace("curl ", "curl --fail-with-body ", 1))
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def folder(docs, index, pairs, tmp_path, monkeypatch):
    """Return a folder with what the pages take as given."""
    folder = tmp_path / "page"
    folder.mkdir()
    for name in ("docs", "my-notes"):
        shutil.copytree(docs, folder / name)
    shutil.copytree(index, folder / "demo-index")
    shutil.copytree(Path(verifiers.__file__).parent / "meve-verifier-1", folder / "my-verifier")
    shutil.copy(pairs, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def kept_signals():
    """Restore the handlers of signals and logs, which a server replaces."""
    handler, handlers = signal.getsignal(signal.SIGTERM), logging.root.handlers[:]
    yield
    signal.signal(signal.SIGTERM, handler)
    logging.root.handlers[:] = handlers


@pytest.mark.parametrize("page", RUN)
def test_commands_of_a_page_run_and_print_what_it_shows(page, folder, kept_signals, meve, monkeypatch):
    for program in ("curl", "sqlite3"):
        if not shutil.which(program) and any(each.command.startswith(f"{program} ") for each in EXAMPLES[page]):
            pytest.skip(f"NOT TESTED: needs {program}")
    shell = Shell(meve, monkeypatch)
    examples = [Example(command, None) for command in GIVEN.get(page, ())]
    examples += [each for each in EXAMPLES[page] if not reason_not_to_run(each.command)]
    for number, example in enumerate(examples):
        shell.run(example, examples[number + 1 :])


def matches_page(output, expected):
    """Return whether the output matches a page, where … stands for the rest of a word or a line, or alone for lines."""
    lines = [
        "(?:.*\n)+" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
        for line in expected.splitlines(keepends=True)
    ]
    return re.fullmatch("".join(lines), output) is not None


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
