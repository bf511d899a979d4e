"""Test what `pip install 'meve[personal-data]'` provides, in an environment with nothing else (see try_wheel.py)."""

import sys
import tempfile
from pathlib import Path

from install_checks import assert_not_installed

import meve
from meve.memory import GovernedMemory, Policy

assert "site-packages" in meve.__file__, meve.__file__
assert_not_installed("torch", "pytest", "psycopg")
policy = Policy.from_dict({"personal_data": {"action": "private", "regions": ["GB"]}})
with (
    tempfile.TemporaryDirectory() as folder,
    GovernedMemory.open(Path(folder) / "memory.db", policy=policy, embedder="static") as memory,
):
    assert memory.add("Ring me on 020 7946 0958.", user_id="ann").policy_class == "private"
sys.stdout.write("an install with the personal-data extra works\n")
