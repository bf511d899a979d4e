"""Do LlamaIndex's own tests pass with our classes in the places of the stock ones?

    python tests/llama_index_integration/upstream.py --source PATH

PATH is a checkout of LlamaIndex, its `llama-index-core`, or the tests in it, of the version that is installed;
MEVE_LLAMA_INDEX_SOURCE names it as well. The tests of chat engines and agents run with `MeVeMemory`, those of Memory
and of its chat store with `MeVeChatStore`. They are copied to a folder of their own and run twice, as they are and
swapped: a test counts against us if it passes as it is and doesn't when swapped. Without a source nothing is run, and
that is said.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "MEVE_LLAMA_INDEX_SOURCE"
PLUGIN = Path(__file__).with_name("upstream_plugin.py")
GROUPS = {
    "chat engines": ["chat_engine/test_*.py"],
    "agents": ["agent/workflow/test_*.py"],
    "memory": [f"memory/test_memory_{name}.py" for name in ("base", "blocks_base", "schema")],
    "chat store": ["storage/chat_store/test_sql.py"],
}
IMPLEMENTATION_TESTS = {
    "storage/chat_store/test_sql.py::test_delete_message": "it reads row numbers out of the stock store's own table",
    "storage/chat_store/test_sql.py::test_dump_load_store": "it wants the messages in the store's model_dump",
}
"""Tests that ask for the inside of the stock class."""


@dataclass(frozen=True)
class GroupResult:
    """What became of a group's tests."""

    group: str
    stock: int
    """Passed as they are."""
    ours: int
    """Passed swapped."""
    all: int
    calls: int
    """How often ours were called."""
    lost: tuple[str, ...]
    """Passed as they are, and not swapped; but for those of `IMPLEMENTATION_TESTS`."""

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, and ours were there at all."""
        return not self.lost and (self.calls > 0 or self.stock == 0)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--source", type=Path, default=os.environ.get(VARIABLE) or None, help=f"where LlamaIndex lies; else {VARIABLE}"
    )
    source = parser.parse_args(arguments).source
    if source is None:
        sys.stdout.write(
            f"SKIPPED: no source of LlamaIndex, so nothing was run; give --source PATH or set {VARIABLE}\n"
        )
        return 0
    told = compare(tests_in(Path(source)))
    sys.stdout.write(
        "| tests of | all | pass as they are | pass with ours | calls of ours |\n|---|---:|---:|---:|---:|\n"
    )
    for each in told:
        sys.stdout.write(f"| {each.group} | {each.all} | {each.stock} | {each.ours} | {each.calls} |\n")
    for each in told:
        for name in each.lost:
            sys.stdout.write(f"LOST: {name}\n")
        if not each.lost and not each.ok:
            sys.stdout.write(f"NOT SWAPPED: ours were never called by the tests of {each.group}\n")
    return 0 if told and all(each.ok for each in told) else 1


def tests_in(source):
    """The folder of tests in a source tree.

    Raises:
        SystemExit: there is none.
    """
    for place in (source / "llama-index-core" / "tests", source / "tests", source):
        if any(files_in(place).values()):
            return place
    raise SystemExit(f"{source} holds no tests of LlamaIndex: give a checkout of it, or its llama-index-core")


def files_in(tests):
    """By group, its files in a folder of tests."""
    return {
        name: [str(f.relative_to(tests)) for pattern in patterns for f in sorted(tests.glob(pattern))]
        for name, patterns in GROUPS.items()
    }


def compare(tests):
    """Each group, as it is and swapped; those that the tree has no tests of aren't among them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tests")
        shutil.copytree(tests, copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PLUGIN, folder)
        Path(folder, "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
        files = files_in(copy)
        all_files = [file for found in files.values() for file in found]
        stock, ours = (run_tests(folder, all_files, swapped=swapped) for swapped in (False, True))
    return [summarize(group, found, stock, ours) for group, found in files.items() if found]


def run_tests(folder, files, *, swapped):
    """What became of each test, by its name."""
    report = Path(folder, "report.json")
    report.unlink(missing_ok=True)
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN.stem, "-p", "no:cacheprovider", "--tb=short"]
    process = subprocess.run(
        [*command, *(f"tests/{file}" for file in files)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "MEVE_SWAP": "yes" if swapped else "", "MEVE_REPORT": str(report)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.is_file():
        raise SystemExit(f"the tests could not be run: {process.stdout[-2_000:]}{process.stderr[-2_000:]}")
    if os.environ.get("MEVE_SHOW"):
        sys.stdout.write(process.stdout)
    return {name.removeprefix("tests/"): told for name, told in json.loads(report.read_text("utf-8")).items()}


def summarize(group, files, stock, ours):
    names = [name for name in {**stock, **ours} if name.partition("::")[0] in files]

    def passed(told, name):
        return told.get(name, {}).get("outcome") == "passed"

    lost = [n for n in names if passed(stock, n) and not passed(ours, n) and n not in IMPLEMENTATION_TESTS]
    return GroupResult(
        group=group,
        stock=sum(passed(stock, name) for name in names),
        ours=sum(passed(ours, name) for name in names),
        all=len(names),
        calls=sum(ours.get(name, {}).get("calls", 0) for name in names),
        lost=tuple(lost),
    )


if __name__ == "__main__":
    sys.exit(main())
