"""Connections to a PostgreSQL database: a pool of them, transactions, and psycopg's errors as MeVe's."""

import os
import selectors
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from meve._extras import require_imports
from meve._fork_safety import GATE, ForkSafeLock, check_process
from meve.errors import ConfigurationError, StorageError, StoreBusyError, StoreCorruptError

if TYPE_CHECKING:
    import psycopg
    import psycopg_pool

    Pool: TypeAlias = psycopg_pool.ConnectionPool[psycopg.Connection[tuple[Any, ...]]]

NEEDS = {"psycopg": "postgres", "psycopg_pool": "postgres"}
PREFIXES = ("postgresql://", "postgres://")
DEFAULTS = {
    "connect_timeout": "5",
    "tcp_user_timeout": "10000",  # milliseconds; without it a server that vanished is noticed after minutes
    "fallback_application_name": "meve",
}
"""Settings of each connection, unless the URL sets them."""
AT_ONCE = 500
"""The number of rows that are fetched at once of those that `Rows.lend` lends."""
_CURSORS = count()
_NONE: Mapping[str, str] = MappingProxyType({})
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE; "  # a server may be set up to answer before a commit is on disk
    "SELECT set_config('synchronous_commit', 'on', TRUE) WHERE current_setting('synchronous_commit') = 'off'"
)

_INHERITED: list[object] = []
"""A forked process's copies of its parent's pools and loans. Closing them would end the parent's sessions."""


def is_postgres_url(target: object) -> bool:
    """Return whether a text names a PostgreSQL database.

    >>> is_postgres_url("postgresql://localhost/graph"), is_postgres_url("graph.db")
    (True, False)
    """
    return isinstance(target, str) and target.startswith(PREFIXES)


def without_password(url: str) -> str:
    """Return a URL without the passwords in it.

    >>> without_password("postgresql://me:secret@db.example/meve?sslmode=require&password=secret")
    'postgresql://me@db.example/meve?sslmode=require'
    """
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    settings = [each for each in parts.query.split("&") if each.partition("=")[0] not in ("password", "sslpassword")]
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + hosts, query="&".join(settings)))


class Rows:
    """Runs statements on one connection; placeholders are `?`, as in SQLite.

    Args:
        connection: the connection.
        lock_seconds: the longest wait for a lock.
    """

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]", lock_seconds: float) -> None:
        self._connection, self._lock_seconds = connection, lock_seconds

    def begin(self, statement: str, then: str = "") -> "psycopg.Cursor[tuple[Any, ...]]":
        """Begin a transaction by `READ` or `WRITE`, and run the statements of `then`, each after a `;`.

        Settings hold for the transaction alone, since behind a pooler the next one may be on another connection.
        """
        return self.execute(f"{statement}; SET LOCAL lock_timeout = {round(self._lock_seconds * 1000)}{then}")

    def read(self, statement: str, values: Sequence[Any], settings: Mapping[str, str]) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that reads, in a transaction of its own; the server is asked once.

        What is sent in one pipeline is one transaction.
        """
        import psycopg

        if not psycopg.Pipeline.is_supported():  # libpq before 14
            self.begin(READ, "".join(f"; SET LOCAL {name} = {value}" for name, value in settings.items()))
            return self.execute(statement, values).fetchall()
        wait = str(round(self._lock_seconds * 1000))
        local = {"transaction_read_only": "on", "lock_timeout": wait, **settings}
        with self._connection.pipeline():
            self.execute("SELECT " + ", ".join(f"set_config('{name}', '{local[name]}', TRUE)" for name in local))
            cursor = self.execute(statement, values)
        return cursor.fetchall()

    def execute(
        self, statement: str, values: Sequence[Any] = (), *, binary: bool = False
    ) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Run a statement, and return the cursor with its rows; bytes take half the memory as `binary` ones."""
        return self._connection.execute(_translate(statement), values, binary=binary)

    @contextmanager
    def lend(self, statement: str, values: Sequence[Any]) -> "Iterator[psycopg.ServerCursor[tuple[Any, ...]]]":
        """Run a statement whose rows stay in the server until they are read; they come in binary form."""
        cursor = self._connection.cursor(f"meve_{next(_CURSORS)}")
        cursor.itersize = AT_ONCE
        try:
            with cursor:
                yield cursor.execute(_translate(statement), values, binary=True)
        finally:
            cursor.close()  # once more: the first time fails if the connection broke

    def executemany(self, statement: str, values: Sequence[Sequence[Any]]) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Run a statement once for each row of values, without waiting for each."""
        cursor = self._connection.cursor()
        cursor.executemany(_translate(statement), values)
        return cursor


class PostgresDatabase:
    """Lends connections to a database. Safe to share between threads; a forked process opens its own.

    Args:
        url: `postgresql://user@host:port/database`. What it leaves out comes from libpq's environment variables, and
            the password from `~/.pgpass` too. Besides libpq's, it may have the parameters `connections`, the most
            connections at once, and `prepared=off`, which a pooler may need: no prepared statements.
        connections: the most connections at once, unless the URL says so.
        wait_seconds: the longest wait for a connection.
        lock_seconds: the longest wait for a lock of another transaction; `wait_seconds` by default.

    Raises:
        ConfigurationError: an invalid URL.
        MissingExtraError: psycopg isn't installed.
    """

    def __init__(
        self, url: str, *, connections: int = 16, wait_seconds: float = 5.0, lock_seconds: float | None = None
    ) -> None:
        with require_imports("PostgreSQL", NEEDS):
            import psycopg
            import psycopg_pool  # noqa: F401
        url, own = _split_off(url)
        connections = int(own.get("connections", connections))
        self._options = {"prepare_threshold": None} if own.get("prepared") == "off" else {}
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # its message holds the URL, and with it the password
            raise ConfigurationError("a PostgreSQL URL must be like postgresql://user@host:5432/database") from None
        self._settings = psycopg.conninfo.make_conninfo("", **{**DEFAULTS, **given, "client_encoding": "UTF8"})
        self.name = _describe(given)
        self._most, self._wait, self._lock_wait = connections, wait_seconds, lock_seconds or wait_seconds
        self._guard = ForkSafeLock()
        self._pool: Pool | None = None
        self._closed = False
        _OPEN.add(self)

    def check(self) -> None:
        """Connect once, outside the pool, which would only tell that it has no connection, not why.

        Raises:
            StorageError: the server can't be reached or refuses, or the database isn't in UTF-8.
        """
        import psycopg

        with self._map_errors(), psycopg.connect(self._settings) as connection:
            encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StorageError(f"{self.name} has the encoding {encoding}: create one with the encoding UTF8")

    def migrate(self, lock: int, versions: str, migrations: Sequence[Sequence[str]], *, first: int = 1) -> int:
        """Create tables, or bring those of an older version to the newest one; one process at a time.

        Args:
            lock: a number that stands for these tables; processes that create or change them wait for each other.
            versions: the name of the table that holds their version.
            migrations: statements. The first ones create the tables, and each later group changes those of the version
                before.
            first: the version that the first of them creates. Tables of an older version stay as they are.

        Returns:
            The version that the database has then; a newer one than the migrations make is left as it is.

        Raises:
            StorageError: the database can't be used. Then nothing is changed.
        """
        with self.writing() as rows:
            rows.execute("SELECT pg_advisory_xact_lock(?)", (lock,))
            if rows.execute("SELECT to_regclass(?)", (versions,)).fetchone() == (None,):
                rows.execute(f"CREATE TABLE {versions} (version INTEGER NOT NULL)")
                rows.execute(f"INSERT INTO {versions} VALUES (?)", (first - 1,))
                found = first - 1
            else:
                ((found,),) = rows.execute(f"SELECT max(version) FROM {versions}").fetchall()
            if found is None:
                raise StoreCorruptError(f"{self.name} lacks the version of its tables in {versions}")
            if found >= first - 1:
                for statements in migrations[found - first + 1 :]:
                    found += 1
                    for statement in statements:
                        rows.execute(statement)
                    rows.execute(f"UPDATE {versions} SET version = ?", (found,))
        return int(found)

    def server(self) -> int:
        """Return the number that a server shares with its replicas and with no other server."""
        ((number,),) = self.query("SELECT system_identifier FROM pg_control_system()")
        return int(number)

    def query(
        self, statement: str, values: Sequence[Any] = (), settings: Mapping[str, str] = _NONE
    ) -> list[tuple[Any, ...]]:
        """Return the rows of one statement that reads; the server is asked once.

        Args:
            statement: the statement.
            values: its values.
            settings: of the server, by name, for this statement alone.

        Raises:
            StorageError: the database can't be used.
        """
        with self.lending() as rows:
            return rows.read(statement, values, settings)

    @contextmanager
    def reading(self, then: str = "") -> Iterator[Rows]:
        """Lend a connection that sees one state of the database.

        Args:
            then: statements that follow the beginning of the transaction, each after a `;`.

        Raises:
            StorageError: the database can't be used.
        """
        with self.lending() as rows:
            rows.begin(READ, then)
            yield rows

    @contextmanager
    def writing(self, then: str = "") -> Iterator[Rows]:
        """Lend a connection in a transaction: commit when the block ends, roll back when it raises.

        Args:
            then: as for `reading`.

        Raises:
            StorageError: the database can't be used; if it fails during the commit, the commit may have happened.
        """
        with self.lending() as rows:
            rows.begin(WRITE, then)
            yield rows

    @contextmanager
    def lending(self) -> Iterator[Rows]:
        """Lend a connection; a transaction that the block begins is committed or, if the block raises, rolled back.

        Raises:
            StorageError: as for `writing`.
        """
        with GATE.passing(), self._map_errors(), ExitStack() as lent:
            connection, process = lent.enter_context(self._open_pool().connection()), os.getpid()
            try:
                yield Rows(connection, self._lock_wait)
            finally:
                if process != os.getpid():
                    _INHERITED.append(lent.pop_all())
            check_process(process)

    def _open_pool(self) -> "Pool":
        import psycopg_pool

        with self._guard:
            if self._closed:
                raise StorageError(f"{self.name} is closed: open it again")
            if self._pool is None:
                self._pool = psycopg_pool.ConnectionPool(
                    self._settings, kwargs={"autocommit": True, **self._options}, min_size=0, max_size=self._most,
                    timeout=self._wait, reconnect_timeout=self._wait, check=_check_alive, open=True,
                )  # fmt: skip
            return self._pool

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is not None:
            pool.close()

    def forked(self) -> None:
        """Start without connections: they belong to the parent process."""
        if self._pool is not None:
            _INHERITED.append(self._pool)
            self._pool = None

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        import psycopg
        from psycopg import errors
        from psycopg_pool import PoolTimeout

        try:
            yield
        except (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure) as cause:
            raise StoreBusyError(f"other writers kept {self.name} locked: try again") from cause
        except PoolTimeout as cause:
            raise StoreBusyError(
                f"{self.name} gave no connection in {self._wait:.0f} s, at most {self._most} at once: try again, or "
                "set connections in the URL"
            ) from cause
        except (errors.UndefinedTable, errors.UndefinedColumn) as cause:
            raise StoreCorruptError(f"{self.name} lacks a table or a column: {_first_line(cause)}") from cause
        except psycopg.Error as cause:
            raise StorageError(f"{self.name} can't be used: {_first_line(cause)}") from cause


def _split_off(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without the parameters that are MeVe's own, and these.

    Raises:
        ConfigurationError: one of them is invalid.
    """
    address, _, query = url.partition("?")
    own: dict[str, str] = {}
    rest = []
    for each in query.split("&"):
        name, _, value = each.partition("=")
        if name == "connections" and not (value.isdecimal() and 2 <= int(value) <= 10_000):
            # the value isn't shown: after a "?" in a password it may be a part of it
            raise ConfigurationError("connections in a PostgreSQL URL must be a number from 2 to 10,000")
        if name == "prepared" and value not in ("on", "off"):
            raise ConfigurationError(f"prepared in a PostgreSQL URL must be on or off, got {value!r:.40}")
        if name in ("connections", "prepared"):
            own[name] = value
        else:
            rest.append(each)
    return (address + "?" * bool(rest) + "&".join(rest) if own else url), own


def _translate(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _first_line(cause: Exception) -> str:
    """Return the first line of a message; further ones may hold values of rows."""
    return next(iter(str(cause).splitlines()), type(cause).__name__)


def _describe(settings: dict[str, Any]) -> str:
    host = settings.get("host") or settings.get("hostaddr") or os.environ.get("PGHOST")
    database = settings.get("dbname") or os.environ.get("PGDATABASE")
    return f"the PostgreSQL database{f' {database}' if database else ''}{f' at {host}' if host else ''}"


def _check_alive(connection: "psycopg.Connection[Any]") -> None:
    """Refuse a kept connection that the server has closed, without asking the server."""
    import psycopg

    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        if selector.select(0):
            connection.close()  # the pool would keep it
            raise psycopg.OperationalError("the server closed the connection")


_OPEN: "weakref.WeakSet[PostgresDatabase]" = weakref.WeakSet()


def _in_child() -> None:
    for database in list(_OPEN):
        database.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
