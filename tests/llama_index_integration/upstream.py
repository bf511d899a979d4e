"""Run LlamaIndex's own tests with our classes in place of the stock ones.

    python tests/llama_index_integration/upstream.py --source PATH

PATH (or MEVE_LLAMA_INDEX_SOURCE) is a checkout of the installed LlamaIndex version, its `llama-index-core`, or its
tests. Tests of chat engines and agents run with `MeVeMemory`, tests of Memory and its chat store with `MeVeChatStore`.
They are copied and run twice, with stock classes and with ours: a test is lost if it passes only with stock classes.
Without a source, nothing is run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
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
    "storage/chat_store/test_sql.py::test_delete_message": "it reads row numbers from the stock store's table",
    "storage/chat_store/test_sql.py::test_dump_load_store": "it expects the messages in the store's model_dump",
}
"""Tests that inspect internals of the stock class, with the reason."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--source", type=Path, default=os.environ.get(VARIABLE) or None, help=f"where LlamaIndex lies; else {VARIABLE}"
    )
    source = parser.parse_args(arguments).source
    if source is None:
        sys.stdout.write(f"SKIPPED: no source of LlamaIndex: nothing was run; give --source PATH or set {VARIABLE}\n")
        return 0
    table = ["| tests of | all | pass as they are | pass with ours | calls of ours |", "|---|---:|---:|---:|---:|"]
    problems = []
    for group, names, stock, ours in compare(tests_in(source)):
        passed = [{n for n in names if results.get(n, {}).get("outcome") == "passed"} for results in (stock, ours)]
        calls = sum(ours.get(name, {}).get("calls", 0) for name in names)
        table.append(f"| {group} | {len(names)} | {len(passed[0])} | {len(passed[1])} | {calls} |")
        lost = sorted(passed[0] - passed[1] - IMPLEMENTATION_TESTS.keys())
        problems += [f"LOST: {name}" for name in lost]
        if passed[0] and not lost and not calls:
            problems.append(f"NOT SWAPPED: ours were never called by the tests of {group}")
    sys.stdout.write("\n".join([*table, *problems, ""]))
    return 1 if problems else 0


def tests_in(source):
    """Return the tests folder of a source tree, or exit."""
    for place in (source / "llama-index-core" / "tests", source / "tests", source):
        if any(files_in(place).values()):
            return place
    raise SystemExit(f"{source} holds no tests of LlamaIndex: give a checkout of it, or its llama-index-core")


def files_in(tests):
    """Return the test files by group."""
    return {
        name: [str(f.relative_to(tests)) for pattern in patterns for f in sorted(tests.glob(pattern))]
        for name, patterns in GROUPS.items()
    }


def compare(tests):
    """Run all tests with stock classes and with ours; yield each group, its tests and both results."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tests")
        shutil.copytree(tests, copy, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(PLUGIN, folder)
        Path(folder, "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
        files = files_in(copy)
        all_files = [file for names in files.values() for file in names]
        stock, ours = (run_tests(folder, all_files, swapped=swapped) for swapped in (False, True))
    for group, names in files.items():
        if names:
            yield group, [n for n in {**stock, **ours} if n.partition("::")[0] in names], stock, ours


def run_tests(folder, files, *, swapped):
    """Return the outcome of each test by name."""
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
    return {name.removeprefix("tests/"): results for name, results in json.loads(report.read_text("utf-8")).items()}


if __name__ == "__main__":
    sys.exit(main())
