"""The database under a store of sealed rows: an SQLite file, or one tenant's part of a PostgreSQL database.

Statements are written once, in SQLite's SQL with `?` for values, and each database translates what it writes otherwise.
Each statement names the tenant, as `tenant = :tenant`, or as the first of the columns that it inserts. A file has one
tenant and no such column, so it leaves this out.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Cursor(Protocol):
    """Holds the rows of a statement."""

    def fetchone(self) -> Any:  # noqa: ANN401 - a row, or None
        """Return the next row."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""

    def __iter__(self) -> Iterator[Any]:
        """Return the rows one by one."""


class Connection(Protocol):
    """Runs statements in a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Run a statement."""

    def lend_rows(self, statement: str, values: Sequence[Any] = (), /) -> AbstractContextManager[Cursor]:
        """Run a statement, and lend its rows, of which the process holds only some at once."""

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once for each row of values."""

    def renew(self, *, exclusive: bool) -> None:
        """Go on with the newest state; with `exclusive`, nobody can write until the next call or the end."""

    def undecoded_text(self) -> AbstractContextManager[None]:
        """Return bytes that are no UTF-8 as surrogate escapes in the block, instead of raising."""


class Database(Protocol):
    """Lends connections. Safe to share between threads; a forked process opens its own."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Lend a connection that sees one state."""

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """Lend a connection in a transaction, one at a time: commit when the block ends, roll back when it raises."""

    def close(self) -> None:
        """Close the connections."""


def upsert(table: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the statement that writes these columns of a row, in place of the row with the same key."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return (
        f"INSERT INTO {table} (tenant, {', '.join(columns)}) VALUES (:tenant{', ?' * len(columns)}) "
        f"ON CONFLICT (tenant, {', '.join(key)}) DO UPDATE SET {changes}"
    )
