"""Fixtures: a memory in a file, and its clock; a PostgreSQL database."""

import os
import uuid
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


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory):
    """Return the URL of a PostgreSQL server that all processes of the test run share."""
    pytest.importorskip("psycopg_pool", reason="PostgreSQL needs the extra postgres")
    from tests.postgres import shared_server

    folder = tmp_path_factory.getbasetemp()
    with shared_server(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server):
    """Return the URL of an empty schema."""
    from tests.postgres import own_schema

    with own_schema(postgres_server, f"meve_{uuid.uuid4().hex}") as url:
        yield url
