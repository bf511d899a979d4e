"""Where a graph is stored: an SQLite file or a PostgreSQL database, behind one interface."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from meve._postgres import PostgresDatabase, is_postgres_url
from meve._sqlite import NO_TRUST, SETTINGS, Connections, map_error
from meve.errors import StoreCorruptError, StoreVersionError

APPLICATION = 0x4D65564B  # "MeVK"
VERSION = 2
WAIT_SECONDS = 5.0
"""The longest wait of a writer for another process."""

SCHEMA = """
CREATE TABLE kernel_conversations (
    number {serial}, tenant {text}, conversation {text}, version {text}, turns INTEGER NOT NULL,
    UNIQUE (tenant, conversation), UNIQUE (tenant, number)
){strict};
CREATE TABLE kernel_turns (
    tenant {text}, number {integer}, position INTEGER NOT NULL, turn {text}, parents {text}, phase {text}, time {real},
    content {text},
    PRIMARY KEY (tenant, number, position), UNIQUE (tenant, number, turn),
    FOREIGN KEY (tenant, number) REFERENCES kernel_conversations (tenant, number)
){packed};
CREATE TABLE kernel_tokens (
    hash {text} PRIMARY KEY, name {text} UNIQUE, tenant {text}, may_add {flag} NOT NULL, created {real} NOT NULL
){packed}
"""

SQLITE_TYPES = {
    "serial": "INTEGER PRIMARY KEY", "text": "TEXT NOT NULL", "integer": "INTEGER NOT NULL", "real": "REAL",
    "flag": "INTEGER", "strict": " STRICT", "packed": " STRICT, WITHOUT ROWID",
}  # fmt: skip
POSTGRES_TYPES = {  # C: compared and ordered by bytes, as in SQLite
    "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "text": 'TEXT COLLATE "C" NOT NULL',
    "integer": "BIGINT NOT NULL", "real": "DOUBLE PRECISION", "flag": "BOOLEAN", "strict": "", "packed": "",
}  # fmt: skip

Row: TypeAlias = tuple[Any, ...]


class Cursor(Protocol):
    """Holds the rows of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    def fetchone(self) -> Any:  # noqa: ANN401 - a row, or None
        """Return the next row."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Rows(Protocol):
    """Runs statements whose placeholders are `?`."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Run a statement."""

    def executemany(self, statement: str, values: Sequence[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each row of values."""


class GraphDatabase(Protocol):
    """A database with the tables of a kernel."""

    name: str
    """Its name in messages, without a password."""
    is_remote: bool
    """Whether a query may wait for a server."""
    among: str
    """The SQL condition that a value is in a JSON list of texts."""
    lock: str
    """The end of a SELECT that locks its rows until the transaction ends."""

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of one statement that reads."""

    def reading(self) -> AbstractContextManager[Rows]:
        """Lend a connection that sees one state of the database."""

    def writing(self) -> AbstractContextManager[Rows]:
        """Lend a connection in a transaction."""

    def clean(self) -> None:
        """Remove copies of erased rows from the disk, where that is possible."""

    def close(self) -> None:
        """Close the connections."""


def open_graph(target: str | Path) -> GraphDatabase:
    """Open the graph at a path or a `postgresql://` URL; the tables are created if they are missing.

    Raises:
        StoreCorruptError: a file of another kind, or a damaged one.
        StoreVersionError: a graph of another version.
        StorageError: the file or the database can't be used.
        ConfigurationError: an invalid URL.
        MissingExtraError: psycopg isn't installed.
    """
    if isinstance(target, str) and is_postgres_url(target):
        return PostgresGraph(target)
    return SqliteGraph(Path(target))


class SqliteGraph:
    """A graph in an SQLite file. Other processes may use the file too."""

    is_remote = False
    among = "IN (SELECT value FROM json_each(?))"
    lock = ""  # only one transaction writes

    def __init__(self, file: Path) -> None:
        self.file, self.name = file, str(file)
        self._connections = Connections(file, (*SETTINGS, "PRAGMA secure_delete = ON"), wait_seconds=WAIT_SECONDS)
        try:
            with self._connections.first(NO_TRUST) as connection:
                self._check(connection)
            with self.writing() as connection:
                if not self._check(connection):
                    for statement in SCHEMA.format(**SQLITE_TYPES).split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.DatabaseError as cause:
            self._connections.close()
            raise map_error(cause, file, "opened") from cause

    def _check(self, connection: Rows) -> bool:
        """Return whether the file has the tables; raise an error if it is of another kind or version."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if not tables and not application:
            return False
        if application != APPLICATION:
            raise StoreCorruptError(f"{self.name} is no file of a graph kernel: name another one")
        _check_version(self.name, version)
        return True

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of one statement that reads."""
        with self._connections.reading() as connection:
            return connection.execute(statement, values).fetchall()

    def reading(self) -> AbstractContextManager[Rows]:
        """Lend a connection that sees one state of the file."""
        return self._connections.reading()

    def writing(self) -> AbstractContextManager[Rows]:
        """Lend the connection that writes, in a transaction."""
        return self._connections.writing()

    def clean(self) -> None:
        """Empty the write-ahead log; erased pages are overwritten anyway."""
        with self._connections.first() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close the file."""
        self._connections.close()


class PostgresGraph:
    """A graph in a PostgreSQL database, in the first schema of the search path. Other processes may use it too."""

    is_remote = True
    among = "IN (SELECT json_array_elements_text(?::json))"
    lock = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self._database = PostgresDatabase(url, wait_seconds=WAIT_SECONDS)
        self.name = self._database.name
        self.query, self.reading, self.writing = self._database.query, self._database.reading, self._database.writing
        self.close = self._database.close
        try:
            self._database.check()
            statements = SCHEMA.format(**POSTGRES_TYPES).split(";")
            found = self._database.migrate(APPLICATION, "kernel_version", [statements], first=VERSION)
            _check_version(self.name, found)
        except BaseException:
            self.close()
            raise

    def clean(self) -> None:
        """Do nothing: the server reuses the space of erased rows at its next VACUUM."""


def _check_version(name: str, version: int | None) -> None:
    if version != VERSION:
        raise StoreVersionError(
            f"the graph in {name} has version {version}, this MeVe reads version {VERSION}: use the MeVe that wrote it"
        )
