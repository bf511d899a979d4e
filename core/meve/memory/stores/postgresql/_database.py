"""One tenant's part of a PostgreSQL database, as the database of a store of sealed rows."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from meve._fork_safety import ForkSafeLock
from meve._postgres import READ, WRITE, PostgresDatabase, Rows
from meve.errors import StoreCorruptError, StoreVersionError
from meve.memory.stores.postgresql._schema import LOCK, MIGRATIONS, TABLES, VERSIONS

if TYPE_CHECKING:
    import psycopg

WAIT_SECONDS = 60.0
"""The longest wait of a writer for other writers."""
_DIFFERENT = re.compile(rf":tenant\b|\buser\b|\bjson_each\((\?|\w+)\)|\b(?:{'|'.join(TABLES)})\b")
"""What is written otherwise than in SQLite: the tenant's number, a reserved word, a function, and names of tables."""


def _translate(tenant: int, statement: str) -> str:
    if ":tenant" not in statement:
        raise AssertionError(f"a statement names no tenant: {statement}")

    def translated(found: re.Match[str]) -> str:
        text = found.group()
        if text == ":tenant":
            return str(tenant)
        if text == "user":
            return '"user"'
        return f"json_array_elements_text({found[1]}::json)" if found[1] else f"meve_{text}"

    return _DIFFERENT.sub(translated, statement)


def enter(tenant: int) -> str:
    """Return the statement by which a transaction sees this tenant's rows alone."""
    return f"; SET LOCAL meve.tenant = {tenant}"


def begin_writing(rows: Rows, tenant: int, *, durable: bool = True) -> None:
    """Begin a transaction that writes a tenant's rows, as soon as no other one does.

    Raises:
        StoreCorruptError: the tenant's row is gone, so nothing would keep other writers out.
    """
    lazily = "" if durable else "; SET LOCAL synchronous_commit = off"
    row = f"SELECT 1 FROM meve_tenants WHERE no = {tenant} FOR UPDATE"
    cursor = rows.begin(WRITE, f"{enter(tenant)}{lazily}; {row}")
    while cursor.nextset():
        pass
    if cursor.fetchone() is None:
        raise StoreCorruptError(
            f"the table meve_tenants lacks the row of tenant number {tenant}: restore it from a backup of the database"
        )


def has_tenant(url: str, tenant: str) -> bool:
    """Return whether a database has a tenant of this name. Creates nothing.

    Raises:
        ConfigurationError: an invalid URL.
        StorageError: the database can't be used.
        MissingExtraError: psycopg isn't installed.
    """
    with closing(PostgresDatabase(url, connections=1)) as database:
        database.check()
        has_tables = database.query("SELECT to_regclass('meve_tenants') IS NOT NULL") == [(True,)]
        return has_tables and bool(database.query("SELECT 1 FROM meve_tenants WHERE name = ?", (tenant,)))


class PostgresConnection:
    """See `meve.memory.stores._sql.database.Connection`.

    Args:
        rows: of a connection in a transaction.
        tenant: the tenant's number.
        translate: translates a statement.
    """

    def __init__(self, rows: Rows, tenant: int, translate: Callable[[str], str]) -> None:
        self._rows, self._tenant, self._translate = rows, tenant, translate

    def execute(self, statement: str, values: Sequence[Any] = ()) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self._rows.execute(self._translate(statement), values, binary=True)

    def lend_rows(
        self, statement: str, values: Sequence[Any] = ()
    ) -> "AbstractContextManager[psycopg.ServerCursor[tuple[Any, ...]]]":
        return self._rows.lend(self._translate(statement), values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> object:
        return self._rows.executemany(self._translate(statement), list(values))

    def renew(self, *, exclusive: bool) -> None:
        self._rows.execute("ROLLBACK")
        if exclusive:
            begin_writing(self._rows, self._tenant)
        else:
            self._rows.begin(READ, enter(self._tenant))

    def undecoded_text(self) -> AbstractContextManager[None]:
        return nullcontext()  # the server stores no other text


class TenantDatabase:
    """See `meve.memory.stores._sql.database.Database`. Other processes may use the database too.

    Args:
        url: the database; its tables are created in the first schema of the search path, if they are missing.
        tenant: the tenant's name.

    Raises:
        ConfigurationError: an invalid URL.
        StorageError: the database can't be used.
        MissingExtraError: psycopg isn't installed.
    """

    def __init__(self, url: str, tenant: str) -> None:
        self._database = PostgresDatabase(url, lock_seconds=WAIT_SECONDS)
        self._writers = ForkSafeLock()  # threads that wait for each other take no connections
        self.name = f"{self._database.name}, tenant {tenant!r}"
        self.close = self._database.close
        try:
            self._database.check()
            version = self._database.migrate(LOCK, VERSIONS, MIGRATIONS)
            if version > len(MIGRATIONS):
                raise StoreVersionError(
                    f"{self.name} is of version {version}, and this meve knows versions up to {len(MIGRATIONS)}: "
                    "upgrade meve"
                )
            self._tenant = self._number_of(tenant)
            self._translate = cache(partial(_translate, self._tenant))
        except BaseException:
            self.close()
            raise

    def _number_of(self, tenant: str) -> int:
        with self._database.writing() as rows:
            rows.execute("INSERT INTO meve_tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (tenant,))
            ((number,),) = rows.execute("SELECT no FROM meve_tenants WHERE name = ?", (tenant,)).fetchall()
        return int(number)

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        with self._database.reading(enter(self._tenant)) as rows:
            yield PostgresConnection(rows, self._tenant, self._translate)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[PostgresConnection]:
        with self._writers, self._database.lending() as rows:
            begin_writing(rows, self._tenant, durable=durable)
            yield PostgresConnection(rows, self._tenant, self._translate)

    def server(self) -> int:
        """Return the number that tells the server, with its replicas, from others."""
        return self._database.server()

    def size(self) -> int:
        """Return the size of the tenant's rows in bytes."""
        sizes = [
            f"coalesce((SELECT sum(pg_column_size(t)) FROM meve_{table} AS t WHERE tenant = ?), 0)" for table in TABLES
        ]
        with self._database.reading(enter(self._tenant)) as rows:
            ((size,),) = rows.execute(f"SELECT {' + '.join(sizes)}", [self._tenant] * len(sizes)).fetchall()
        return int(size)
