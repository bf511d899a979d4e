"""Run the own tests of LangChain, LangGraph and LlamaIndex with our classes in place of the stock ones.

    python tests/upstream/run.py PATH…

A PATH is an unpacked source distribution or a checkout of a package in its installed version, or its tests. Nothing is
fetched. The tests are copied and run twice, with stock classes and with ours: a test is lost if it passes only with
stock classes. MEVE_UPSTREAM holds paths for the test suite.

These source distributions carry tests: langchain-core, langchain-classic, langchain, langgraph-checkpoint and
langgraph-prebuilt (`pip download --no-binary :all: --no-deps langgraph-checkpoint==…`). That of llama-index-core has
none: it needs a checkout. The tests need packages of their own (pytest-mock, blockbuster, syrupy, …); those that lack
one fail with stock classes, too, and don't count.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VARIABLE = "MEVE_UPSTREAM"
HERE = Path(__file__).parent
FRAMEWORKS = {
    "langgraph": {
        "stores": ["test_store.py"],
        "tools": ["test_tool_node*.py", "test_on_tool_call.py", "test_tool_call_*.py"],
        "agents": ["test_react_agent.py"],
        "runtime": ["test_runtime.py"],
    },
    "langchain": {
        "vector store": ["unit_tests/vectorstores/test_in_memory.py"],
        "indexing": ["unit_tests/indexing/test_indexing.py", "unit_tests/indexes/test_indexing.py"],
        "message history": ["unit_tests/chat_history/test_*.py", "unit_tests/runnables/test_history.py"],
        "retrievers": [
            f"unit_tests/retrievers/{name}.py" for name in ("test_multi_vector", "test_parent_document", "self_query/*")
        ],
        "chains with memory": [
            *(f"unit_tests/chains/test_{name}.py" for name in ("memory", "conversation*", "sequential")),
            "unit_tests/memory/test_combined_memory.py",
        ],
        "agents": ["unit_tests/agents/test_*.py"],
    },
    "llama_index": {
        "chat engines": ["chat_engine/test_*.py"],
        "agents": ["agent/workflow/test_*.py"],
        "memory": [f"memory/test_memory_{name}.py" for name in ("base", "blocks_base", "schema")],
        "chat store": ["storage/chat_store/test_sql.py"],
    },
}
"""By framework, the groups of its test files that use a class which we have one for."""
LABELS = "it wants labels with dots, NULs or numbers, and empty ones, refused, which ours takes"
EXPECTED_TO_FAIL = {
    **dict.fromkeys(
        (
            "test_store.py::test_cannot_put_empty_namespace",
            "test_store.py::test_rejects_invalid_namespace_labels",
            "test_store.py::test_async_rejects_invalid_namespace_labels",
        ),
        LABELS,
    ),
    "test_store.py::test_vector_store_initialization": "it reads `index_config` of the stock store",
    "storage/chat_store/test_sql.py::test_delete_message": "it reads row numbers from the stock store's table",
    "storage/chat_store/test_sql.py::test_dump_load_store": "it expects the messages in the store's model_dump",
}
"""Tests that inspect internals of the stock class or differ on purpose, without parameters, with the reason."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, nargs="*", metavar="PATH", help="where a package's source lies")
    sources = parser.parse_args(arguments).sources
    if not sources:
        sys.stdout.write("SKIPPED: no source: nothing was run; name the paths of unpacked source distributions\n")
        return 0
    table = [
        "| source | tests of | all | pass as they are | pass with ours | calls of ours |",
        "|---|---|---:|---:|---:|---:|",
    ]
    problems = []
    for source, (framework, tests) in [(each, tests_in(each)) for each in sources]:
        for group, names, stock, ours in compare(framework, tests):
            passed = [{n for n in names if results.get(n, {}).get("outcome") == "passed"} for results in (stock, ours)]
            calls = sum(ours.get(name, {}).get("calls", 0) for name in names)
            counts = f"{len(names)} | {len(passed[0])} | {len(passed[1])} | {calls}"
            table.append(f"| {source.resolve().name} | {group} | {counts} |")
            lost = sorted(n for n in passed[0] - passed[1] if n.partition("[")[0] not in EXPECTED_TO_FAIL)
            problems += [f"LOST: {name}" for name in lost]
            if passed[0] and not lost and not calls:
                problems.append(f"NOT SWAPPED: ours were never called by the tests of {group}")
    sys.stdout.write("\n".join([*table, *problems, ""]))
    return 1 if problems else 0


def tests_in(source):
    """Return the framework and the tests folder of a source tree, or exit."""
    for place in (source / "llama-index-core" / "tests", source / "tests", source):
        for framework in FRAMEWORKS:
            if any(files_in(framework, place).values()):
                return framework, place
    raise SystemExit(f"{source} holds no tests of LangChain, LangGraph or LlamaIndex that use a class of ours")


def files_in(framework, tests):
    """Return the test files by group."""
    return {
        name: [str(f.relative_to(tests)) for pattern in patterns for f in sorted(tests.glob(pattern))]
        for name, patterns in FRAMEWORKS[framework].items()
    }


def compare(framework, tests):
    """Run all tests with stock classes and with ours; yield each group, its tests and both results."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tests")
        shutil.copytree(tests, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("upstream_plugin.py", *(each.name for each in HERE.glob("swap_*.py"))):
            shutil.copy(HERE / name, folder)
        Path(folder, "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
        files = files_in(framework, copy)
        all_files = [file for names in files.values() for file in names]
        stock, ours = (run_tests(folder, framework, all_files, swapped=swapped) for swapped in (False, True))
    for group, names in files.items():
        if names:
            yield group, [n for n in {**stock, **ours} if n.partition("::")[0] in names], stock, ours


def run_tests(folder, framework, files, *, swapped):
    """Return the outcome of each test by name."""
    report = Path(folder, "report.json")
    report.unlink(missing_ok=True)
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {
        "PYTHONPATH": path, "MEVE_SWAP": "yes" if swapped else "", "MEVE_FRAMEWORK": framework,
        "MEVE_REPORT": str(report), "NO_DOCKER": "true",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "upstream_plugin", "-p", "no:cacheprovider", "--tb=short"]
    process = subprocess.run(
        [*command, *(f"tests/{file}" for file in files)],
        cwd=folder,
        env=os.environ | variables,
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
