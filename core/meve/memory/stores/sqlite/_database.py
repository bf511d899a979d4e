"""An SQLite file as the database of a store of sealed rows."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from meve._sqlite import Connections

_TENANT = re.compile(r"\b(?:\w+\.)?tenant = :tenant AND | WHERE tenant = :tenant(?! AND )|:?\btenant, ")


@cache
def _without_tenant(statement: str) -> str:
    return _TENANT.sub("", statement)


class SqliteConnection:
    """See `meve.memory.stores._sql.database.Connection`.

    Args:
        connection: SQLite's, in a transaction.
    """

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(_without_tenant(statement), values)

    def lend_rows(self, statement: str, values: Sequence[Any] = ()) -> AbstractContextManager[sqlite3.Cursor]:
        return nullcontext(self.execute(statement, values))  # SQLite finds each row when it is asked for

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        return self._connection.executemany(_without_tenant(statement), values)

    def renew(self, *, exclusive: bool) -> None:
        self._connection.rollback()
        self._connection.execute("BEGIN IMMEDIATE" if exclusive else "BEGIN")

    @contextmanager
    def undecoded_text(self) -> Iterator[None]:
        self._connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        try:
            yield
        finally:
            self._connection.text_factory = str


class SqliteDatabase:
    """See `meve.memory.stores._sql.database.Database`.

    Args:
        connections: to the file.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.name = str(connections.file)
        self.close = connections.close

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        with self._connections.reading() as connection:
            yield SqliteConnection(connection)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteConnection]:
        with self._connections.writing(durable=durable) as connection:
            yield SqliteConnection(connection)
