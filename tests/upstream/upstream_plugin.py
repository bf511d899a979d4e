"""A pytest plugin that replaces a framework's stock classes by ours while its own tests run.

MEVE_FRAMEWORK names the module `swap_…` that does so if MEVE_SWAP is set. Outcome and calls of our classes by test are
written to the file MEVE_REPORT.
"""

import functools
import importlib
import json
import os
import tempfile
from pathlib import Path

import pytest

from meve.memory import GovernedMemory
from meve.testing.fakes import WordEmbedder

_FOLDER = tempfile.TemporaryDirectory()
_MEMORIES = []
_CALLS = {"all": 0}
_RESULTS = {}


def open_memory(embedder=None):
    _MEMORIES.append(
        GovernedMemory.open(Path(_FOLDER.name, f"{len(_MEMORIES)}.db"), embedder=embedder or WordEmbedder())
    )
    return _MEMORIES[-1]


def count_method(method):
    @functools.wraps(method)
    def called(*args, **kwargs):
        _CALLS["all"] += 1
        return method(*args, **kwargs)

    return called


def count_calls(swapped, names):
    for name in names:
        setattr(swapped, name, count_method(getattr(swapped, name)))


def pytest_configure(config):
    if os.environ.get("MEVE_SWAP"):
        importlib.import_module(f"swap_{os.environ['MEVE_FRAMEWORK']}").swap_classes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = _CALLS["all"]
    result = yield
    _RESULTS.setdefault(item.nodeid, {"outcome": "passed"})["calls"] = _CALLS["all"] - before
    return result


def pytest_runtest_logreport(report):
    result = _RESULTS.setdefault(report.nodeid, {"outcome": "passed"})
    if report.outcome != "passed":
        result["outcome"] = report.outcome


def pytest_collectreport(report):
    if report.failed:
        _RESULTS[report.nodeid] = {"outcome": "failed", "calls": 0}


def pytest_sessionfinish():
    Path(os.environ["MEVE_REPORT"]).write_text(json.dumps(_RESULTS), "utf-8")
    for each in _MEMORIES:
        each.close()
    _FOLDER.cleanup()
