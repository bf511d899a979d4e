"""Test that a memory file from elsewhere runs nothing: unknown triggers, views and columns are refused at opening."""

import sqlite3
from contextlib import closing

import pytest

from meve._postgres import is_postgres_url
from meve.errors import MeveError, StoreCorruptError
from tests.memories import open_memory, run_sql


@pytest.fixture
def file(file):
    if is_postgres_url(file):
        pytest.skip("about an SQLite file: a server's tables are its operator's")
    return file


def make_file(file):
    with open_memory(file) as memory:
        for n in range(60):
            memory.add(f"Tomato number {n} needs sun.", user_id="ann", source="doc", id=str(n))


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER keep AFTER DELETE ON memories BEGIN INSERT INTO meta VALUES (OLD.id, OLD.kind); END",
        "CREATE VIEW everything AS SELECT * FROM memories",
        "ALTER TABLE memories ADD COLUMN copy TEXT",
        "ALTER TABLE memories ADD COLUMN copy TEXT GENERATED ALWAYS AS (kind) VIRTUAL",
        "ALTER TABLE memories RENAME COLUMN model TO mode",
        "ALTER TABLE archive ADD COLUMN copy TEXT",
        "CREATE VIRTUAL TABLE words USING fts5 (text)",
        "CREATE TABLE mine (row INTEGER REFERENCES memories (row))",  # no row that it names could be erased
        'CREATE TABLE mine (row INTEGER REFERENCES "Memories" (row))',
        "CREATE UNIQUE INDEX mine ON opinions (reflection)",  # no second row could be added
        "CREATE INDEX mine ON archive (abs(hold))",  # a function that fails would let nothing be archived
        "CREATE INDEX mine ON archive (hold) WHERE abs(hold) > 1",
        "DROP TABLE opinions",
    ],
)
def test_unknown_part_of_a_file_is_refused_at_opening(file, statement):
    make_file(file)
    run_sql(file, statement)
    with pytest.raises(StoreCorruptError, match="which meve didn't make"):
        open_memory(file)


def test_index_and_table_of_your_own_are_no_obstacle(file):
    make_file(file)
    run_sql(
        file,
        "CREATE TABLE mine (a UNIQUE)",
        "CREATE TABLE other (a REFERENCES mine (a))",
        "CREATE INDEX mine_too ON memories (source)",
        "ANALYZE",
    )
    with open_memory(file) as memory:
        assert len(memory.list(user_id="ann")) == 60


def test_schema_is_not_trusted(file):
    with open_memory(file) as memory, memory._runtime.store.backend._connections.reading() as connection:
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_damaged_page_is_found_on_request_and_by_maintenance(file):
    make_file(file)
    with open_memory(file) as memory:
        assert memory.find_damage() == memory.maintain().damage == []
    with closing(sqlite3.connect(file)) as connection, connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'memories_changed'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with file.open("r+b") as stream:
        stream.seek((root - 1) * size + 8)
        stream.write(b"\xff" * 40)
    with open_memory(file) as memory:
        try:
            found = memory.find_damage()
        except MeveError as error:
            found = [str(error)]
        assert found
