"""Run the Python blocks of README and docs as tests."""

import os
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"], excludes=["CHANGELOG.md"]).pytest()

SHARED = Path(__file__).resolve().parent.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of evaluation data beside the project; skip the test if it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no evaluation data at {SHARED.name}/ beside the project")
    return SHARED
