"""Connections to a PostgreSQL database, apart from what is stored there."""

import re
import threading
import time
from contextlib import closing
from urllib.parse import quote

import pytest

from meve._postgres import PostgresDatabase
from meve.errors import StorageError, StoreBusyError

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs the extra postgres")


@pytest.fixture
def database(postgres_url):
    with closing(PostgresDatabase(postgres_url, connections=2, lock_seconds=0.3)) as opened:
        yield opened


def test_query_asks_the_server_once(database, tmp_path):
    """However often a statement has been run: from the fifth time on it is prepared."""
    for n in range(7):
        with open(tmp_path / str(n), "wb") as file:
            with database.lending() as rows:  # the pool lends the same one again
                rows._connection.pgconn.trace(file.fileno())
            assert database.query("SELECT ?::int + 1", (n,), {"enable_indexscan": "off"}) == [(n + 1,)]
            with database.lending() as rows:
                rows._connection.pgconn.untrace()
        sides = re.findall(r"\t([FB])\t", (tmp_path / str(n)).read_text())
        assert "".join(sides).count("FB") == 1


def test_settings_of_a_query_hold_for_it_alone(database):
    query = "SELECT current_setting('enable_indexscan'), current_setting('transaction_read_only')"
    assert database.query(query, (), {"enable_indexscan": "off"}) == [("off", "on")]
    with database.lending() as rows:
        assert rows.execute(query).fetchall() == [("on", "off")]
        assert rows.execute("SHOW lock_timeout").fetchall() == [("0",)]


def test_query_that_writes_is_refused_and_changes_nothing(database):
    with database.writing() as rows:
        rows.execute("CREATE TABLE numbers (n INTEGER)")
    with pytest.raises(StorageError, match="cannot execute INSERT in a read-only transaction"):
        database.query("INSERT INTO numbers VALUES (1) RETURNING n")
    assert database.query("SELECT count(*) FROM numbers") == [(0,)]


def test_query_that_fails_leaves_the_connection_in_order(database):
    for _ in range(8):  # more than there are connections
        with pytest.raises(StorageError, match="division by zero"):
            database.query("SELECT 1 / ?::int", (0,))
        assert database.query("SELECT 1 / ?::int", (1,)) == [(1,)]
    with database.writing() as rows:
        assert rows.execute("SELECT pg_current_xact_id_if_assigned() IS NULL").fetchall() == [(True,)]


def test_query_waits_for_a_lock_no_longer_than_allowed(database):
    with database.writing() as rows:
        rows.execute("CREATE TABLE numbers (n INTEGER)")
    with database.writing() as rows:
        rows.execute("LOCK numbers IN ACCESS EXCLUSIVE MODE")
        begin = time.monotonic()
        with pytest.raises(StoreBusyError, match="other writers kept"):
            database.query("SELECT * FROM numbers")
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_query_that_is_ended_leaves_no_transaction_open(postgres_url, end):
    """As it is by somebody who cancels it; a broken connection is replaced."""
    name, failed = f"ended by {end}", []

    def ask():
        try:
            database.query("SELECT pg_sleep(60)")
        except StorageError as error:
            failed.append(error)

    with (
        closing(PostgresDatabase(f"{postgres_url}&application_name={quote(name)}")) as database,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        thread = threading.Thread(target=ask)
        thread.start()
        while not failed:
            sleeping = "application_name = %s AND query LIKE '%%pg_sleep%%' AND state = 'active'"
            other.execute(f"SELECT {end}(pid) FROM pg_stat_activity WHERE {sleeping}", (name,))
            time.sleep(0.05)
        thread.join()
        assert database.query("SELECT 1") == [(1,)]
        states = other.execute("SELECT state FROM pg_stat_activity WHERE application_name = %s", (name,)).fetchall()
        assert {state for (state,) in states} == {"idle"}
