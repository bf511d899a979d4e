"""Fixtures: a memory in a file, and its clock; a PostgreSQL database."""

import os
import sqlite3
import uuid
from datetime import UTC, datetime
from functools import partial

import pytest

from meve._postgres import is_postgres_url
from meve.memory import GovernedMemory, Policy
from meve.testing.fakes import FakeClock
from tests.memories import KEY


@pytest.fixture
def clock():
    return FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))


@pytest.fixture
def file(request, tmp_path):
    """Return where a test may keep a memory: the path of an SQLite file, or a URL with `--memory postgresql`."""
    where = request.config.getoption("--memory")
    if where == "sqlite":
        return tmp_path / "memory.db"
    from tests.postgres import MemoryUrl

    keys = request.getfixturevalue("keys_url") if where == "postgresql-keys" else tmp_path / "memory.keys"
    url = MemoryUrl(request.getfixturevalue("postgres_url"), keys)
    patch = request.getfixturevalue("monkeypatch")
    patch.setattr(GovernedMemory, "open", partial(open_with_keys, GovernedMemory.open))
    patch.setattr(sqlite3, "connect", partial(connect_or_skip, sqlite3.connect))
    return url


def open_with_keys(inner, file=None, **options):
    """Open a memory; one in PostgreSQL with the key file that its URL knows."""
    if is_postgres_url(file) and "key_file" not in options:
        options["key_file"] = file.keys
    return inner(file, **options)


def connect_or_skip(inner, file, *arguments, **options):
    """Open an SQLite file."""
    if file is None or is_postgres_url(file):  # the path of a memory that has no file
        pytest.skip("about an SQLite file")
    return inner(file, *arguments, **options)


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


@pytest.fixture
def recorded():
    """Return what MeVe reports to OpenTelemetry during the test."""
    pytest.importorskip("opentelemetry.sdk", reason="needs the SDK of OpenTelemetry")
    from tests.recorded import recording

    with recording() as made:
        yield made


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory):
    """Return the URL of a PostgreSQL server that all processes of the test run share."""
    pytest.importorskip("psycopg_pool", reason="PostgreSQL needs the extra postgres")
    from tests.postgres import shared_server

    folder = tmp_path_factory.getbasetemp()
    with shared_server(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) as url:
        yield url


@pytest.fixture(scope="session")
def keys_server(tmp_path_factory):
    """Return the URL of a second server, for keys; all processes of the test run share it."""
    pytest.importorskip("psycopg_pool", reason="PostgreSQL needs the extra postgres")
    from tests.postgres import started_server

    folder = tmp_path_factory.getbasetemp()
    meeting = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "keys"
    meeting.mkdir(exist_ok=True)
    with started_server(meeting) as url:
        yield url


@pytest.fixture
def keys_url(keys_server):
    """Return the URL of an empty schema on the server for keys, where a test may expect a file."""
    from tests.postgres import KeysUrl, own_schema

    with own_schema(keys_server, f"keys_{uuid.uuid4().hex}") as url:
        yield KeysUrl(url)


@pytest.fixture
def postgres_url(postgres_server):
    """Return the URL of an empty schema."""
    from tests.postgres import own_schema

    with own_schema(postgres_server, f"meve_{uuid.uuid4().hex}") as url:
        yield url
