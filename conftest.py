"""The Python blocks of README and docs are tests; docstrings are run by pytest itself."""

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
    """The folder of evaluation data beside the project; where it's absent the test is skipped, and says so."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no evaluation data at {SHARED.name}/ beside the project")
    return SHARED
