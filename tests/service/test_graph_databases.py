"""Rules of one kind of graph alone: files of another kind, and servers that are gone."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from meve.conversation import SlicePolicy
from meve.errors import ConfigurationError, StorageError, StoreBusyError, StoreCorruptError
from tests.service.kernels import entries, open_kernel

POLICY = SlicePolicy.paper()


def test_file_of_another_kind_is_refused_and_left_as_it_was(tmp_path):
    file = tmp_path / "kernel.db"
    file.write_bytes(b"no database, but longer than a header of SQLite needs" * 9)
    with pytest.raises(StoreCorruptError, match="damaged, or a file of another kind"):
        open_kernel(tmp_path)
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    before = file.read_bytes()
    with pytest.raises(StoreCorruptError, match="no file of a graph kernel"):
        open_kernel(tmp_path)
    assert file.read_bytes() == before
    with pytest.raises(StorageError, match="check the permissions"):
        open_kernel(tmp_path / "none")


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_file_is_private(tmp_path):
    with closing(open_kernel(tmp_path)) as kernel:
        kernel.add("acme", "c", entries())
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Return a kernel whose file another program locks."""
    monkeypatch.setattr("meve.service.kernel._graphs.WAIT_SECONDS", 1.0)
    with closing(open_kernel(tmp_path)) as kernel, closing(sqlite3.connect(tmp_path / "kernel.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        yield kernel


def test_file_that_another_program_locks_is_busy(locked):
    with pytest.raises(StoreBusyError, match="try again"):
        locked.add("acme", "c", entries())


def test_closing_waits_for_one_writer_not_for_all_that_wait(locked):
    """A kernel that is stopped while another program locks its file would otherwise wait once for each of them."""
    refused = []

    def write():
        with pytest.raises(StorageError) as caught:
            locked.add("acme", "c", entries())
        refused.append(type(caught.value))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    locked.close()
    for thread in threads:
        thread.join()
    assert refused.count(StoreBusyError) <= 2


def test_rows_that_another_program_locks_are_busy(postgres_url, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setattr("meve.service.kernel._graphs.WAIT_SECONDS", 0.1)
    with closing(open_kernel(postgres_url)) as kernel, psycopg.connect(postgres_url) as other:
        kernel.add("acme", "c", [])
        other.execute("SELECT * FROM kernel_conversations FOR UPDATE")
        with pytest.raises(StoreBusyError, match="try again"):
            kernel.add("acme", "c", entries())


SECRET = "sesame-open"


@pytest.mark.parametrize(
    ("url", "match"),
    [
        (
            f"postgresql://user:{SECRET}@127.0.0.1:1/graph",
            "database graph at 127.0.0.1 can't be used: connection failed",
        ),
        (f"postgresql://user:{SECRET}@[::1/graph", "must be like postgresql://user@host"),
        (f"postgresql://user:{SECRET}@127.0.0.1:1/graph?nonsense=1", "must be like postgresql://user@host"),
        (f"postgres://user:{SECRET}@%zz/graph", "must be like postgresql://user@host"),
    ],
)
def test_no_error_of_a_url_tells_its_password(url, match):
    pytest.importorskip("psycopg_pool")
    with pytest.raises((StorageError, ConfigurationError), match=match) as caught:
        open_kernel(url)
    error, seen = caught.value, ""
    while error is not None:
        seen, error = seen + repr(error) + str(error), error.__cause__
    assert SECRET not in seen


def test_connections_that_the_server_closed_are_replaced(postgres_url):
    psycopg = pytest.importorskip("psycopg")
    with closing(open_kernel(postgres_url)) as kernel:
        kernel.add("acme", "c", entries())
        with psycopg.connect(postgres_url, autocommit=True) as other:
            ended = other.execute(
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                "WHERE application_name = 'meve' AND pid <> pg_backend_pid()"
            ).fetchone()
        assert ended[0] >= 1
        assert kernel.cut("acme", "c", "7", POLICY)
        assert kernel.add("acme", "c", entries())[0] == 0


def test_connection_that_ends_within_a_transaction_adds_nothing(postgres_url):
    pytest.importorskip("psycopg")
    with closing(open_kernel(postgres_url)) as kernel:
        database = kernel.store.database

        def write_and_end():
            with database.writing() as rows:
                rows.execute("INSERT INTO kernel_version VALUES (3)")
                rows.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        with pytest.raises(StorageError, match="can't be used"):
            write_and_end()
        assert database.query("SELECT version FROM kernel_version") == [(2,)]


FORKED = """
import os, sys
from tests.service.kernels import entries, open_kernel
from meve.conversation import SlicePolicy
kernel = open_kernel(sys.argv[1])
kernel.add("acme", "c", entries())
if (child := os.fork()) == 0:
    kernel.cut("acme", "c", "7", SlicePolicy())
    os._exit(0) if sys.argv[2] == "hard" else sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
kernel.cut("acme", "c", "6", SlicePolicy())
assert kernel.add("acme", "c", entries())[0] == 0
kernel.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("end", ["hard", "soft"])
def test_forked_child_leaves_its_parents_connections_alone(postgres_url, end):
    result = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, postgres_url, end],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_database_that_isnt_utf8_is_refused(postgres_server):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS meve_latin")
        connection.execute("CREATE DATABASE meve_latin ENCODING 'LATIN1' TEMPLATE template0")
        try:
            with pytest.raises(StorageError, match="encoding LATIN1"):
                open_kernel(postgres_server.replace("/postgres?", "/meve_latin?"))
        finally:
            connection.execute("DROP DATABASE meve_latin WITH (FORCE)")
