"""Fixtures: a memory in a file, and its clock."""

from datetime import UTC, datetime

import pytest

from meve.memory import GovernedMemory, Policy
from meve.testing.fakes import FakeClock
from tests.memories import KEY


@pytest.fixture
def clock():
    return FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def static_memory(file, clock):
    """A memory with the static embedder, whose cosines of sentences that differ in one word are higher."""
    with GovernedMemory.open(file, clock=clock, audit_key=KEY, embedder="static") as opened:
        yield opened


@pytest.fixture
def memory(file, clock):
    with GovernedMemory.open(file, clock=clock, audit_key=KEY) as opened:
        yield opened


@pytest.fixture
def paper_memory(file, clock):
    """Return a memory under the published policy."""
    with GovernedMemory.open(file, clock=clock, audit_key=KEY, policy=Policy.paper()) as opened:
        yield opened
