"""Run the Python blocks of README and docs as tests, and settings of every test process."""

import gc
import os
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the test processes fill the cores

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"], excludes=["CHANGELOG.md"]).pytest()

SHARED = Path(__file__).resolve().parent.parent / "shared"


def pytest_collection_finish() -> None:
    """Leave imported modules out of garbage collections: each took half a second with them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of evaluation data beside the project; skip the test if it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no evaluation data at {SHARED.name}/ beside the project")
    return SHARED
